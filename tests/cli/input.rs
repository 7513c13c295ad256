//! Malformed input: the error states the problem and the correct form.

mod bounds;
mod memory;

use crate::support::{Env, Outcome, play};

const MIB: usize = 1024 * 1024;

fn post_with_details(env: &Env, details: impl Into<Vec<u8>>) -> Outcome {
    let post = env.jobboard(&["post", "resize", "--details", "-"]);
    post.stdin(details).run()
}

#[test]
fn details_with_invalid_utf8() {
    let env = Env::new();
    post_with_details(&env, b"{\"a\": \"\xff\"}").failed(2);
}

#[test]
fn json_errors_have_fixed_keys() {
    let env = Env::new();
    let error = env.run("show @1 --json").error();
    let keys: Vec<_> = error.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["code", "kind", "message", "hint", "commands"]);
}

#[test]
fn malformed_input_is_answered_with_the_correct_form() {
    play(
        r#"
        # details
        2 post resize --details '{"a": }' => not valid JSON => line 1 column 7
        2 post resize --details '{"a":\n1,}' => not valid JSON => line 2 column 3
        2 post resize --details [1] => must be a JSON object => an array
        2 post resize --details 7 => must be a JSON object => a number
        2 post resize a:={ => `a`: not valid JSON => line 1 column 1
        2 post resize word => `word` => KEY=TEXT => KEY:=JSON
        2 post resize a=1 a=2 => `a` is given twice
        2 post resize a:= => `a` => empty input
        2 post resize =b => `=b` has no key before `=`
        2 post resize '' => must not be empty => KEY=TEXT
        2 post resize --details @missing.json => missing.json => no such file
        2 post --from missing.jsonl => missing.jsonl => no such file
        2 post --from - --priority HIGH => --priority
        none

        # the password of a board that was given without --board
        2 show redis://user:hunter2@host/0 => redis://user:********@host/0
        2 redis://user:hunter2@host/0 => redis://user:********@host/0
        2 list --config redis://user:hunter2@host/0 => redis://user:********@host/0
        none

        # choices and numbers
        2 post a --priority urgent => `urgent` => VERY_HIGH, HIGH, NORMAL, LOW, VERY_LOW
        2 list --state lost => `lost` => UNCLAIMED, CLAIMED
        2 list --sort colour => colour => rank => taskflow
        2 list -o xml => xml => jsonl
        2 watch --event stolen => `stolen` => posted, claimed => paused, resumed, resync
        2 post a --uuid 5f3a => `5f3a` is not a uuid
        2 list --limit many => many => --limit
        2 -ojson list --limit x => {"error":{"code":2,"kind":"usage"
        2 -o json list --limit x => {"error":{"code":2,"kind":"usage"
        2 --format=jsonl list --limit x => {"error":{"code":2,"kind":"usage"
        2 conduct --max-jobs 0 => invalid value `0`: use 1 or more
        2 conduct --max-attempts 0 => invalid value `0`: use 1 or more
        2 retry --problem failed --canary 0 => invalid value `0`: use 1 or more
        none

        # selections
        2 purge => --older-than or --all
        2 trash => --state, --name, --filter or --problem
        2 wait => no job given => --empty or --any
        2 wait @1 --empty
        2 wait --any --empty
        none

        # durations
        2 conduct --drain --job-timeout 0s => --job-timeout => longer than 0s
        2 conduct --drain --job-timeout-max 0s => --job-timeout-max => longer than 0s
        2 claim @1 --expiry 5 => `5` has no unit => `5s` => d, h, m, s, ms
        2 claim --next --wait 5 => `5` has no unit => `5s` => d, h, m, s, ms
        2 wait @1 --timeout 5 => `5` has no unit => `5s` => d, h, m, s, ms
        2 purge --older-than 5 => `5` has no unit => `5s` => d, h, m, s, ms
        2 list --op-timeout 5 => `5` has no unit => `5s` => d, h, m, s, ms
        2 list --filter held>5 => `5` has no unit => `5s` => d, h, m, s, ms
        2 claim @1 --expiry 0s => 0s => 1ms => 3650d
        2 extend @1 --expiry 0s => 0s => 1ms => 3650d
        2 claim @1 --expiry 3651d => 3651d => 1ms => 3650d
        2 extend @1 --expiry 3651d => 3651d => 1ms => 3650d
        none
        "#,
    );
}

#[test]
fn malformed_boards_filters_and_names_are_answered() {
    play(
        r#"
        # boards
        2 list --board redis://host/notanumber => `notanumber` => redis://HOST/0
        2 list --board redis://host?namespase=x => `namespase` => namespace
        2 list --board sqlite:x?sink=full => `sink` => sync
        2 list --board sqlite:x?sync=often => often => full or normal
        2 list --board sqlite: => sqlite:PATH
        2 list --board etcd://host => `etcd` => redis => zk
        2 list --board prod => `prod` => [board.NAME]
        2 list --board ./jobs.db => sqlite:./jobs.db
        2 list --board '' => --board is empty

        # filters
        2 list --filter nme=x => `nme` => did you mean `name`? => details.PATH
        2 list --filter colour=red => `colour` => priority
        2 list --filter name==x => `==` => = != ~ !~ < <= > >=
        2 list --filter priority~HIGH => `~` => priority => <=
        2 list --filter name => FIELD OP VALUE
        2 list --filter age> => the value after `>` is missing
        2 list --filter name~( => regular expression
        2 list --filter priority=urgent => `urgent` => VERY_HIGH

        # names, owners and references
        2 post 'a\e[2J' => control characters => \u{1b}
        2 post 'a\nb' => control characters => a newline
        2 post '' => needs a name
        2 claim @1 --who '' => --who => empty
        2 claim @1 --who 'a\nb' => --who => control characters
        2 abandon @1 --force --owner '' => --owner => empty
        2 post a --book flows => NAME:UUID
        2 post a --book flows:1 => NAME:UUID
        2 post a --uuid 5f3a => 5f3a => --uuid
        2 post a --unique '' => unique key => empty
        2 claim resize => `resize` => uuid => @SEQUENCE => key:TEXT
        2 consume resize => `resize` => uuid => @SEQUENCE => key:TEXT
        2 abandon resize => `resize` => uuid => @SEQUENCE => key:TEXT
        3 wait resize => the uuid or name resize
        3 restore resize => the uuid or name resize
        3 retry resize => the uuid or name resize
        3 trash resize => the uuid or name resize
        2 claim 5f3 => `5f3` => 4 or more
        none

        # standard input cannot serve two purposes
        2 consume - - => standard input
        2 post a --details - --password-file - => standard input
        2 post --from - --password-file - => standard input
        2 show - --password-file - => standard input
        2 wait - --password-file - => standard input
        2 consume - --password-file - => standard input
        2 trash - --password-file - => standard input
        2 restore - --password-file - => standard input
        2 purge - --password-file - => standard input
        none

        # options without effect, or of another mode
        2 consume @1 --filter name=x => --filter
        2 post a --timeout 1s => --wait
        2 post a --from x => --from
        2 claim @1 --filter name=x => --filter
        2 post a --check-first => --check-first
        2 claim @1 --wait 1s => --wait
        2 wait @1 --filter name=x => --filter
        2 wait --empty --filter name=x => --filter
        none

        # an invalid owner in the environment
        2 JOBBOARD_WHO= list => JOBBOARD_WHO is empty
        "#,
    );
}
