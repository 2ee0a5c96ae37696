# An agent of a few kilobytes: stamps its start, and changes the word on its screen when told to (USR1).
printf '%s %s\n' $$ "$(date +%s.%N)" >>"$BENCH_STARTS/$1"
mood=resting
change() { if [ $mood = resting ]; then mood=WORKING; else mood=resting; fi; printf '\033[2J\033[H%s\n' $mood; }
trap change USR1
printf '%s\n' $mood
while :; do sleep 1000 & wait $!; kill $! 2>/dev/null; done
