# Turns a number of seconds into words such as "1h 2m 5s". Parts that are zero are left out.
human_duration() {
  local total=$1
  local hours=$((total / 3600))
  local minutes=$((total / 60))
  local seconds=$((total % 60))
  local words=()
  if ((hours > 0)); then words+=("${hours}h"); fi
  if ((minutes > 0)); then words+=("${minutes}m"); fi
  if ((seconds > 0 || total == 0)); then words+=("${seconds}s"); fi
  echo "${words[*]}"
}
