#!/usr/bin/env bash
# Checks human_duration against a table of cases.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 2
source lib/duration.sh
passed=0
failed=0

check() {
  local actual
  actual=$(human_duration "$1")
  if [[ $actual == "$2" ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAIL human_duration $1: expected '$2', got '$actual'"
  fi
}

check 0 "0s"
check 59 "59s"
check 60 "1m"
check 125 "2m 5s"
check 3600 "1h"
check 3725 "1h 2m 5s"
check 86399 "23h 59m 59s"

echo "$passed passed, $failed failed"
((failed == 0))
