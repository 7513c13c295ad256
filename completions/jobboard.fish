# Completion for fish. It asks jobboard, which knows its commands and what is on the board.

complete -c jobboard -kxa '(COMPLETE=fish jobboard -- (commandline -opc) (commandline -ct))'
# Behind -- stands a command of any kind.
complete -c jobboard -n 'contains -- -- (commandline -opc)' -F
