# What each job of the matrix runs: it holds a lock for as long as anything of it lives, and writes
# down what becomes of it, and whom it finds alive. SHAPES, LONG and LEASE come from the test.
exec > /dev/null 2>&1 9>> "lock.$JOBBOARD_JOB"
note() {
    echo "$1 $JOBBOARD_JOB $JOBBOARD_FENCE $JOBBOARD_CONDUCTOR $2 $(date +%s.%N)" >> log
}
if ! flock -n 9; then
    note double "$(tail -n 1 "lock.$JOBBOARD_JOB")"
    echo "$JOBBOARD_JOB, fence $JOBBOARD_FENCE, finds:" >> holders
    find /proc/[0-9]*/fd/9 -lname "*/lock.$JOBBOARD_JOB" | while IFS=/ read -r _ _ pid _; do
        case $pid in $$ | self | thread-self) continue ;; esac
        echo "$pid $(tr '\0' ' ' < "/proc/$pid/cmdline")" >> holders
        # It is known by now, and would be found again and again.
        kill -9 "$pid"
    done
    exit 1
fi
echo "$JOBBOARD_FENCE" >&9
note start -
case $JOBBOARD_JOB in
?[0-9]*) short=0.1 ;;
?[a-d]*) short=$(echo "$LEASE" | awk '{ print $1 * 0.8 }') ;;
*) short=$(echo "$LEASE" | awk '{ print $1 * 2.2 }') ;;
esac
# Leaves somebody behind for long unless it comes to its own end.
work="sleep $LONG & sleep $short && kill -9 \$!"
first=${JOBBOARD_JOB%"${JOBBOARD_JOB#?}"}
# shellcheck disable=SC2086 # words
set -- $SHAPES
shift $((0x$first % $#))
case $1 in
plain) eval "$work" ;;
timeout) timeout 60 sh -c "$work" ;;
setsid) setsid -w sh -c "$work" ;;
deaf) trap '' TERM && sh -c "$work" ;;
bare) env -i PATH="$PATH" setsid -w sh -c "$work" ;;
orphan) (setsid sleep "$LONG" &) && sleep "$short" ;;
bare-orphan) (env -i PATH="$PATH" setsid sleep "$LONG" &) && sleep "$short" ;;
esac || exit 1
note end -
