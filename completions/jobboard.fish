# Completion for fish. It asks jobboard for the commands and the jobs on the board.

complete -c jobboard -kxa '(COMPLETE=fish jobboard -- (commandline -opc) (commandline -ct))'
# Any command can follow --.
complete -c jobboard -n 'contains -- -- (commandline -opc)' -F
