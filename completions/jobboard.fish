# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_jobboard_global_optspecs
    string join \n board= config= who= o/format= json color= q/quiet v/verbose op-timeout= password-file= read-only h/help V/version
end

function __fish_jobboard_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_jobboard_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_jobboard_using_subcommand
    set -l cmd (__fish_jobboard_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c jobboard -n "__fish_jobboard_needs_command" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_needs_command" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_needs_command" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_needs_command" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_needs_command" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_needs_command" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_needs_command" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_needs_command" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_needs_command" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_needs_command" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_needs_command" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_needs_command" -s V -l version -d 'Print version'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "post" -d 'Post a job'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "run" -d 'Post a job, run its command here, and consume it'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "list" -d 'List the jobs on the board'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "ls" -d 'List the jobs on the board'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "show" -d 'Show all that is known of jobs'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "explain" -d 'Explain why a job is where it is, who has it or what it waits for, and what to type'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "owner" -d 'Print who has claimed a job'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "claim" -d 'Claim a job'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "extend" -d 'Give claims a new expiry'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "abandon" -d 'Give claimed jobs back to the board'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "consume" -d 'Remove finished jobs from the board'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "trash" -d 'Move jobs to the trash'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "restore" -d 'Put trashed jobs back on the board'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "retry" -d 'Have jobs tried again now: from the trash, or held back on the board'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "change" -d 'Change jobs that nobody has: their priority, name or details'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "purge" -d 'Remove trashed jobs for good'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "pause" -d 'Have jobs of some names left alone, by our conductors and by `claim --next`'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "resume" -d 'Have jobs taken again that were paused'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "wait" -d 'Wait until jobs are finished, the board is empty, or a job can be claimed'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "watch" -d 'Tell what happens on the board, as it happens'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "conduct" -d 'Claim jobs and run their commands, until told to stop'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "conductors" -d 'List the conductors that are at work on the board'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "dump" -d 'Write all jobs of the board and its trash to a file, for `load`'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "load" -d 'Put jobs on the board that `dump` has written'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "copy" -d 'Copy all jobs of the board and its trash to another board, or move the jobs there'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "status" -d 'Show how the board is, at a glance'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "dash" -d 'Show the board live on a terminal: its jobs, who has them, what fails, who works'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "report" -d 'Write a page about the board, to look at or to attach to a ticket'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "check" -d 'Check the board for monitoring, as a plugin of Nagios, Icinga or Sensu'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "metrics" -d 'Tell Prometheus how the board is'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "doctor" -d 'Examine the board for what is wrong with it, and say what mends it'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "ping" -d 'Check that the board can be reached'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "config" -d 'Print the effective configuration, and where each value comes from'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "man" -d 'Print the manual page, or write the pages of all commands to a folder'
complete -c jobboard -n "__fish_jobboard_needs_command" -f -a "help" -d 'Print the help of a command, or of a topic: output, filters, boards or exit-codes'
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l details -d 'The details: a JSON object, @FILE, or - for standard input; facts are added to it' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l priority -d 'How urgent it is: VERY_HIGH, HIGH, NORMAL, LOW or VERY_LOW' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l book -d 'The logbook that belongs to the job' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l uuid -d 'The uuid of the job, instead of a random one' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l unique -d 'Post nothing while the job that was posted under this key is on the board' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l from -d 'Post many jobs: one JSON object a line of FILE, or of standard input (-)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l timeout -d 'With --wait: wait no longer than this' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l trace -d 'Keep the trace that TRACEPARENT tells of, so that attempts are linked to it'
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l check-first -d 'With --from: read and check every line before posting any'
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l create -d 'Make also the folder for the file of the board, which only the default board does by itself'
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l dry-run -d 'Show the record that would be posted, and post nothing'
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l wait -d 'Wait until the job is finished, and exit as `wait` does'
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand post" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l details -d 'The details: a JSON object, @FILE, or - for standard input; facts are added to it' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l priority -d 'How urgent it is: VERY_HIGH, HIGH, NORMAL, LOW or VERY_LOW' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l book -d 'The logbook that belongs to the job' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l uuid -d 'The uuid of the job, instead of a random one' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l unique -d 'Post nothing while the job that was posted under this key is on the board' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l max-attempts -d 'How often a job that fails is tried before it goes to the trash, if it does not say so itself' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l max-attempts-max -d 'How often a job that fails is tried at most, whatever it says itself' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l retry-delay -d 'How long a job that failed waits; twice as long each time' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l retry-max -d 'The longest that a job that failed waits' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l on-failure -d 'What becomes of a job whose command fails' -r -f -a "abandon\t'It goes back to the board, to be tried again'
consume\t'It is gone'
trash\t'It goes to the trash at once'"
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l lease -d 'How long the claim outlives us if we die; it is renewed all the while' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l create -d 'Make also the folder for the file of the board, which only the default board does by itself'
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l state -d 'List only jobs in this state' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l name -d 'List only jobs of this name, such as \'backup-*\'' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l filter -d 'List only jobs for which this holds, such as \'priority>=HIGH\'; several must all hold' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l sort -d 'The order: as jobs are offered (rank), or by a field of filters, such as \'held\' or \'-attempts\'' -r -f -a "rank\t''
taskflow\t''
none\t''
name\t''
state\t''
owner\t''
priority\t''
sequence\t''
age\t''
held\t''
expires\t''
attempts\t''
size\t''
trashed\t''
ended\t''
outcome\t''
by\t''
action\t''
reason\t''
waited\t''
took\t''
exit_code\t''
details\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l limit -d 'List no more than this many jobs' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l columns -d 'Show these columns, with + also these, and without those that have a -: \'name,note\', \'+size,-age\'' -r -f -a "uuid\t''
name\t''
state\t''
priority\t''
age\t''
owner\t''
held\t''
expires\t''
attempts\t''
note\t''
key\t''
sequence\t''
size\t''
trashed\t''
outcome\t''
ended\t''
waited\t''
took\t''
by\t''
action\t''
reason\t''
exit_code\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l by -d 'Count those apart that differ in these fields of filters, such as \'name\' or \'state,owner\'' -r -f -a "name\t''
state\t''
owner\t''
priority\t''
sequence\t''
age\t''
held\t''
expires\t''
attempts\t''
size\t''
trashed\t''
ended\t''
outcome\t''
by\t''
action\t''
reason\t''
waited\t''
took\t''
exit_code\t''
details\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l unclaimed -d 'List only jobs that nobody has claimed'
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l trash -d 'List the trash instead'
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l past -d 'List the jobs that have left the board instead, the latest first'
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l shared -d 'Take in what other boards have put into the trash that they share with this one'
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l reverse -d 'List in the opposite order'
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l count -d 'Print only how many there are'
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l state -d 'List only jobs in this state' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l name -d 'List only jobs of this name, such as \'backup-*\'' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l filter -d 'List only jobs for which this holds, such as \'priority>=HIGH\'; several must all hold' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l sort -d 'The order: as jobs are offered (rank), or by a field of filters, such as \'held\' or \'-attempts\'' -r -f -a "rank\t''
taskflow\t''
none\t''
name\t''
state\t''
owner\t''
priority\t''
sequence\t''
age\t''
held\t''
expires\t''
attempts\t''
size\t''
trashed\t''
ended\t''
outcome\t''
by\t''
action\t''
reason\t''
waited\t''
took\t''
exit_code\t''
details\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l limit -d 'List no more than this many jobs' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l columns -d 'Show these columns, with + also these, and without those that have a -: \'name,note\', \'+size,-age\'' -r -f -a "uuid\t''
name\t''
state\t''
priority\t''
age\t''
owner\t''
held\t''
expires\t''
attempts\t''
note\t''
key\t''
sequence\t''
size\t''
trashed\t''
outcome\t''
ended\t''
waited\t''
took\t''
by\t''
action\t''
reason\t''
exit_code\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l by -d 'Count those apart that differ in these fields of filters, such as \'name\' or \'state,owner\'' -r -f -a "name\t''
state\t''
owner\t''
priority\t''
sequence\t''
age\t''
held\t''
expires\t''
attempts\t''
size\t''
trashed\t''
ended\t''
outcome\t''
by\t''
action\t''
reason\t''
waited\t''
took\t''
exit_code\t''
details\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l unclaimed -d 'List only jobs that nobody has claimed'
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l trash -d 'List the trash instead'
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l past -d 'List the jobs that have left the board instead, the latest first'
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l shared -d 'Take in what other boards have put into the trash that they share with this one'
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l reverse -d 'List in the opposite order'
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l count -d 'Print only how many there are'
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand ls" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand show" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand show" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand show" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand show" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand show" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand show" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand show" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand show" -l reveal -d 'Show secrets too'
complete -c jobboard -n "__fish_jobboard_using_subcommand show" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand show" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand show" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand show" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand explain" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand explain" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand explain" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand explain" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand explain" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand explain" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand explain" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand explain" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand explain" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand explain" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand explain" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand owner" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand owner" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand owner" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand owner" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand owner" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand owner" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand owner" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand owner" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand owner" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand owner" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand owner" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand owner" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l filter -d 'With --next: only a job for which this holds' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l wait -d 'With --next: wait up to this long for a job that can be claimed' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l expiry -d 'Let the claim lapse after this long, such as 15m' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l lease -d 'How long a kept claim outlives us if we die; it is renewed all the while' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l if-none -d 'With --next: exit with this code if there is none, and not with 6, or 124 after --wait' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l max-attempts -d 'How often a job that fails is tried before it goes to the trash, if it does not say so itself' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l max-attempts-max -d 'How often a job that fails is tried at most, whatever it says itself' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l retry-delay -d 'How long a job that failed waits; twice as long each time' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l retry-max -d 'The longest that a job that failed waits' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l on-failure -d 'What becomes of a job whose command fails' -r -f -a "abandon\t'It goes back to the board, to be tried again'
consume\t'It is gone'
trash\t'It goes to the trash at once'"
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l next -d 'Claim the best job that nobody has claimed'
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l hold -d 'Stay, and keep the claim alive; abandon the job when interrupted'
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand claim" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -l expiry -d 'Let the claim lapse after this long, such as 15m' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -l owner -d 'With --force: act only on jobs that are claimed by this name, whatever the board showed before' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -l confirm -d 'State the name of a protected board instead of being asked for it' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -l force -d 'Do it for whoever has the jobs, whom --owner names'
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -s y -l yes -d 'Do it without asking (or JOBBOARD_YES)'
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand extend" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l state -d 'Act on every job in this state' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l name -d 'Act on every job of this name, such as \'backup-*\'' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l filter -d 'Act on every job for which this holds, such as \'held>10m\'; several must all hold' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l limit -d 'Act on no more than this many of them, the first in the order of `list`' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l max -d 'Refuse to act on more jobs than this' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l owner -d 'With --force: act only if this is the owner, whatever the board showed before' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l reason -d 'Say why; it is kept with your name, for `show`, `list --past` and whoever asks later (1 KiB)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l confirm -d 'State the name of a protected board instead of being asked for it' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l dry-run -d 'Show the jobs that would be acted on, as `list` does, and do nothing'
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l force -d 'Override whoever holds the job, as long as nothing changes meanwhile'
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -s y -l yes -d 'Do it without asking (or JOBBOARD_YES)'
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand abandon" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l state -d 'Act on every job in this state' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l name -d 'Act on every job of this name, such as \'backup-*\'' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l filter -d 'Act on every job for which this holds, such as \'held>10m\'; several must all hold' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l limit -d 'Act on no more than this many of them, the first in the order of `list`' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l max -d 'Refuse to act on more jobs than this' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l owner -d 'With --force: act only if this is the owner, whatever the board showed before' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l reason -d 'Say why; it is kept with your name, for `show`, `list --past` and whoever asks later (1 KiB)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l confirm -d 'State the name of a protected board instead of being asked for it' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l failed -d 'They are finished because they failed: so they are remembered, and who waits for one is told'
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l dry-run -d 'Show the jobs that would be acted on, as `list` does, and do nothing'
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l force -d 'Override whoever holds the job, as long as nothing changes meanwhile'
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -s y -l yes -d 'Do it without asking (or JOBBOARD_YES)'
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand consume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l state -d 'Act on every job in this state' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l name -d 'Act on every job of this name, such as \'backup-*\'' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l filter -d 'Act on every job for which this holds, such as \'held>10m\'; several must all hold' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l limit -d 'Act on no more than this many of them, the first in the order of `list`' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l max -d 'Refuse to act on more jobs than this' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l owner -d 'With --force: act only if this is the owner, whatever the board showed before' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l reason -d 'Say why; it is kept with your name, for `show`, `list --past` and whoever asks later (1 KiB)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l confirm -d 'State the name of a protected board instead of being asked for it' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l dry-run -d 'Show the jobs that would be acted on, as `list` does, and do nothing'
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l force -d 'Override whoever holds the job, as long as nothing changes meanwhile'
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -s y -l yes -d 'Do it without asking (or JOBBOARD_YES)'
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand trash" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l state -d 'Act on every job in this state' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l name -d 'Act on every job of this name, such as \'backup-*\'' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l filter -d 'Act on every job for which this holds, such as \'held>10m\'; several must all hold' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l limit -d 'Act on no more than this many of them, the first in the order of `list`' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l max -d 'Refuse to act on more jobs than this' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l reason -d 'Say why; it is kept with your name, for `show`, `list --past` and whoever asks later (1 KiB)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l confirm -d 'State the name of a protected board instead of being asked for it' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l dry-run -d 'Show the jobs that would be acted on, as `list` does, and do nothing'
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l shared -d 'Take in what other boards have put into the trash that they share with this one'
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -s y -l yes -d 'Do it without asking (or JOBBOARD_YES)'
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand restore" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l state -d 'Act on every job in this state' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l name -d 'Act on every job of this name, such as \'backup-*\'' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l filter -d 'Act on every job for which this holds, such as \'held>10m\'; several must all hold' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l limit -d 'Act on no more than this many of them, the first in the order of `list`' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l max -d 'Refuse to act on more jobs than this' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l rate -d 'Not more than so many a second, minute or hour, such as 5/s' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l reason -d 'Say why; it is kept with your name, for `show`, `list --past` and whoever asks later (1 KiB)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l confirm -d 'State the name of a protected board instead of being asked for it' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l dry-run -d 'Show the jobs that would be acted on, as `list` does, and do nothing'
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l keep-attempts -d 'Go on counting attempts and postponements instead of beginning anew'
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l shared -d 'Take in what other boards have put into the trash that they share with this one'
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -s y -l yes -d 'Do it without asking (or JOBBOARD_YES)'
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand retry" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -l priority -d 'How urgent they are: VERY_HIGH, HIGH, NORMAL, LOW or VERY_LOW' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -l name -d 'What they are called' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -l details -d 'The details in the place of those that they have: a JSON object, @FILE, or - for standard input' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -l set -d 'Set this in the details: KEY=TEXT, or KEY:=JSON for other than text' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -l unset -d 'Take this out of the details' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -l reason -d 'Say why; it is kept with your name, for `show`, `list --past` and whoever asks later (1 KiB)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand change" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l state -d 'Act on every job in this state' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l name -d 'Act on every job of this name, such as \'backup-*\'' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l filter -d 'Act on every job for which this holds, such as \'held>10m\'; several must all hold' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l limit -d 'Act on no more than this many of them, the first in the order of `list`' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l max -d 'Refuse to act on more jobs than this' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l older-than -d 'Purge what has been in the trash for longer than this' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l reason -d 'Say why; it is kept with your name, for `show`, `list --past` and whoever asks later (1 KiB)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l confirm -d 'State the name of a protected board instead of being asked for it' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l dry-run -d 'Show the jobs that would be acted on, as `list` does, and do nothing'
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l all -d 'Purge all that is in the trash'
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l shared -d 'Take in what other boards have put into the trash that they share with this one'
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -s y -l yes -d 'Do it without asking (or JOBBOARD_YES)'
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand purge" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand pause" -l for -d 'End it by itself after this long, such as 2h' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand pause" -l reason -d 'Say why; it is kept with your name, for `show`, `list --past` and whoever asks later (1 KiB)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand pause" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand pause" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand pause" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand pause" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand pause" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand pause" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand pause" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand pause" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand pause" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand pause" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand pause" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand pause" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand resume" -l reason -d 'Say why; it is kept with your name, for `show`, `list --past` and whoever asks later (1 KiB)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand resume" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand resume" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand resume" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand resume" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand resume" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand resume" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand resume" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand resume" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand resume" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand resume" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand resume" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand resume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -l filter -d 'With --any: wait for a job for which this holds' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -l timeout -d 'Wait no longer than this' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -l empty -d 'Wait until no job is on the board'
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -l any -d 'Wait until a job can be claimed, and print it'
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -l gone-ok -d 'Take a whole uuid of which nothing is known for a job that is complete'
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand wait" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -l filter -d 'Tell only of jobs for which this holds, as the event left them; several must all hold' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -l event -d 'Tell only of events of this kind; repeat it for several' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -l since -d 'Begin with what happened in the last this long, as far as the board can prove it' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -l count -d 'End after this many events' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -l timeout -d 'End after this long: with 124 if there is a --count that was not reached, otherwise with 0' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -s j -l jobs -d 'How many jobs to run at once' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l name -d 'The name under which to register and to claim, instead of host:pid:random' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l filter -d 'Only jobs for which this holds' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l lease -d 'How long a claim outlives us if we die; it is renewed all the while' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l max-jobs -d 'Exit after so many jobs' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l idle-exit -d 'Exit after so long without a job' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l job-timeout -d 'How long a job may run that does not say so itself' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l job-timeout-max -d 'How long a job may run at most, whatever it says itself' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l max-attempts -d 'How often a job that fails is tried before it goes to the trash, if it does not say so itself' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l max-attempts-max -d 'How often a job that fails is tried at most, whatever it says itself' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l retry-delay -d 'How long a job that failed waits; twice as long each time' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l retry-max -d 'The longest that a job that failed waits' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l on-failure -d 'What becomes of a job whose command fails' -r -f -a "abandon\t'It goes back to the board, to be tried again'
consume\t'It is gone'
trash\t'It goes to the trash at once'"
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l output -d 'Where the output of commands goes: prefix, inherit, discard, or a folder' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l grace -d 'How long running jobs may go on after the first SIGTERM or SIGINT; a second one ends them' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l log-format -d 'The form in which to tell what happens, on stderr; json if --json is given' -r -f -a "text\t'A line each, for people'
json\t'An object a line'"
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l metrics -d 'Tell Prometheus how the board and the conductor are: ADDRESS:PORT, unix:PATH, or a file *.prom' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l otlp-file -d 'Add each attempt to this file, a line of OTLP as JSON, linked to where its job was posted' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l handlers -d 'Run a job by the program of its name in this folder, with its details on standard input' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l allow -d 'Let jobs name programs whose absolute path is like this; a * ends at a slash' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l allow-env -d 'Let jobs set variables whose name is like this; never LD_*, PATH or JOBBOARD_*' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l create -d 'Make also the folder for the file of the board, which only the default board does by itself'
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l drain -d 'Exit once no job is left that this conductor may run'
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l metrics-public -d 'Let --metrics listen where other machines can ask'
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l allow-any -d 'Let jobs name any program, whoever can post them'
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand conduct" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand conductors" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conductors" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand conductors" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conductors" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand conductors" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand conductors" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand conductors" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand conductors" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand conductors" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand conductors" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand conductors" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand conductors" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand dump" -l filter -d 'Dump only jobs for which this holds, such as \'name=backup-*\'; several must all hold' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand dump" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand dump" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand dump" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand dump" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand dump" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand dump" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand dump" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand dump" -l shared -d 'Take in what other boards have put into the trash that they share with this one'
complete -c jobboard -n "__fish_jobboard_using_subcommand dump" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand dump" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand dump" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand dump" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand dump" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -l filter -d 'Load only jobs for which this holds, such as \'name=backup-*\'; several must all hold' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -l fresh -d 'Have their attempts begin anew, and none held back'
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -l malformed -d 'Load also what could not be read, onto a board of the same kind'
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -l dry-run -d 'Say what would be posted, and post nothing'
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -l create -d 'Make also the folder for the file of the board, which only the default board does by itself'
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand load" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l to -d 'The other board: a URL, or a name from the configuration' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l to-password-file -d 'Read the password of the other board from this file' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l filter -d 'Copy only jobs for which this holds, such as \'name=backup-*\'; several must all hold' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l confirm -d 'State the name of a protected board instead of being asked for it' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l move -d 'Take the jobs off the board that are on the other one now'
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l fresh -d 'Have their attempts begin anew, and none held back'
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l dry-run -d 'Say what would be posted, and change nothing'
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -s y -l yes -d 'Do it without asking (or JOBBOARD_YES)'
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l shared -d 'Take in what other boards have put into the trash that they share with this one'
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l create -d 'Make also the folder for the file of the board, which only the default board does by itself'
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand copy" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand status" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand status" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand status" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand status" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand status" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand status" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand status" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand status" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand status" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand status" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand status" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -l view -d 'Begin with this view' -r -f -a "jobs\t''
claims\t'The claims, by owner'
failures\t'The failures, by what they have in common'
trash\t''
past\t'The jobs that have left the board, the latest first'
conductors\t''
events\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -l filter -d 'Begin with this filter; several must all hold (`jobboard help filters`)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -l act -d 'Let keys in upper case change the board, each time after a question'
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -l once -d 'Print one frame as plain text, and end'
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -l ascii -d 'Draw with ASCII alone; any other character becomes a ?'
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand dash" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand report" -l at -d 'Tell ages, and what is left of claims, as of this time instead of now, as 2026-11-20T18:00:00Z' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand report" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand report" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand report" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand report" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand report" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand report" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand report" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand report" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand report" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand report" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand report" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -s w -l warn -d 'Warn if a value is outside of a range' -r -f -a "unclaimed\t''
oldest_unclaimed\t''
claimed\t''
longest_claim\t''
never_lapsing\t''
orphaned\t''
not_renewed\t''
exhausted\t''
postponed\t''
malformed\t''
trashed\t''
conductors\t''
rtt\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -s c -l crit -d 'It is critical if a value is outside of a range' -r -f -a "unclaimed\t''
oldest_unclaimed\t''
claimed\t''
longest_claim\t''
never_lapsing\t''
orphaned\t''
not_renewed\t''
exhausted\t''
postponed\t''
malformed\t''
trashed\t''
conductors\t''
rtt\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -l filter -d 'Count only jobs for which this holds; several must all hold (`jobboard help filters`)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -l timeout -d 'How long it may take, before it is critical that the board does not answer' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand metrics" -l by -d 'Also count jobs by this: the 50 most frequent names, and all others together as __other__' -r -f -a "name\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand metrics" -l textfile -d 'The file to write; its name ends in .prom' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand metrics" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand metrics" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand metrics" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand metrics" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand metrics" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand metrics" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand metrics" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand metrics" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand metrics" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand metrics" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand metrics" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand metrics" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l only -d 'Look for these alone: groups, such as claims, or codes' -r -f -a "connection\t''
server\t''
keys\t''
claims\t''
conductors\t''
local\t''
rights-missing\t''
server-away\t''
tls-expires\t''
evicts\t''
not-persistent\t''
persistence-fails\t''
writable-replica\t''
replica-lags\t''
writable-by-others\t''
damaged\t''
disk-full\t''
log-large\t''
wrong-type\t''
stray-keys\t''
sequence-behind\t''
malformed\t''
record-unreadable\t''
shared-trash\t''
never-lapsing\t''
held-by-dead\t''
not-renewed\t''
lock-broken\t''
exhausted\t''
clock-ahead\t''
no-conductor\t''
silent\t''
same-name\t''
unsettled\t''
commands-and-peers\t''
config-writable\t''
password-readable\t''
kernel\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l skip -d 'Look for all but these' -r -f -a "connection\t''
server\t''
keys\t''
claims\t''
conductors\t''
local\t''
rights-missing\t''
server-away\t''
tls-expires\t''
evicts\t''
not-persistent\t''
persistence-fails\t''
writable-replica\t''
replica-lags\t''
writable-by-others\t''
damaged\t''
disk-full\t''
log-large\t''
wrong-type\t''
stray-keys\t''
sequence-behind\t''
malformed\t''
record-unreadable\t''
shared-trash\t''
never-lapsing\t''
held-by-dead\t''
not-renewed\t''
lock-broken\t''
exhausted\t''
clock-ahead\t''
no-conductor\t''
silent\t''
same-name\t''
unsettled\t''
commands-and-peers\t''
config-writable\t''
password-readable\t''
kernel\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l reason -d 'With --fix: keep with each job why it was done' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l confirm -d 'State the name of a protected board instead of being asked for it' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l list -d 'List what is looked for, and look for nothing'
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l fix -d 'Show the commands of jobboard that mend what was found, ask, and do them one by one'
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l dry-run -d 'With --fix: only show what would be done'
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -s y -l yes -d 'Do it without asking (or JOBBOARD_YES)'
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand ping" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand ping" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand ping" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand ping" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand ping" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand ping" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand ping" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand ping" -l shared -d 'Take in what other boards have put into the trash that they share with this one'
complete -c jobboard -n "__fish_jobboard_using_subcommand ping" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand ping" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand ping" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand ping" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand ping" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand config" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand config" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand config" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand config" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand config" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand config" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand config" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand config" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand config" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand config" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand config" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand config" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand completions" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand completions" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand completions" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand completions" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand completions" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand completions" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand completions" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand completions" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand completions" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand completions" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand completions" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand man" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand man" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand man" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand man" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand man" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand man" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand man" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand man" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand man" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand man" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand man" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c jobboard -n "__fish_jobboard_using_subcommand help" -l board -d 'The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand help" -l config -d 'Read this configuration file and no other (or JOBBOARD_CONFIG)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand help" -l who -d 'The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand help" -s o -l format -d 'The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere' -r -f -a "table\t'Tables and sentences for people'
tsv\t'Tab-separated fields, a line each'
json\t'JSON'
jsonl\t'JSON, an object a line'
uuid\t'References alone, one a line: uuids, and key:TEXT for what has none'"
complete -c jobboard -n "__fish_jobboard_using_subcommand help" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c jobboard -n "__fish_jobboard_using_subcommand help" -l op-timeout -d 'How long one operation of the board may take, and connecting, if that is less than 3s (or JOBBOARD_OP_TIMEOUT; otherwise 5s)' -r
complete -c jobboard -n "__fish_jobboard_using_subcommand help" -l password-file -d 'Read the board\'s password from this file, or from standard input (-)' -r -F
complete -c jobboard -n "__fish_jobboard_using_subcommand help" -l json -d 'The same as --format json'
complete -c jobboard -n "__fish_jobboard_using_subcommand help" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c jobboard -n "__fish_jobboard_using_subcommand help" -s v -l verbose -d 'Also say which board is used, as whom, and how long it took'
complete -c jobboard -n "__fish_jobboard_using_subcommand help" -l read-only -d 'Refuse whatever would change the board (or JOBBOARD_READ_ONLY)'
complete -c jobboard -n "__fish_jobboard_using_subcommand help" -s h -l help -d 'Print help (see more with \'--help\')'
