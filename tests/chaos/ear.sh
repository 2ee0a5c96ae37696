# In the place of an agent that fell back to a bare shell: whatever is typed here is written down.
while IFS= read -r line; do printf '%s\n' "$line" >>"$1"; done
exec sleep 1000
