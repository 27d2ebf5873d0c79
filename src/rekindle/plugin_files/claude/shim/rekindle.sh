#!/bin/sh
# Find the installed Rekindle and run it: `hook HARNESS EVENT` or `mcp`.
# Without Rekindle, a session must still work: one line when it starts, and exit code 0.

remembered="$HOME/.local/state/rekindle/plugin-hook"
if [ "$1" = hook ]; then
  # Sessions that Rekindle starts have their own hooks.
  [ -z "${REKINDLE_LAUNCH-}${REKINDLE_ONE_SHOT+yes}" ] || exit 0
  # The start of a session runs the main program, which writes these paths after an upgrade.
  case $3 in
  SessionStart*) ;;
  *)
    if [ -r "$remembered" ]; then
      { read -r python && read -r program; } <"$remembered"
      [ -x "$python" ] && [ -r "$program" ] && exec "$python" -I -S "$program" "$2" "$3"
    fi
    ;;
  esac
fi

# A program in the session's folder is not used, because the agent could have written it. That
# does not help in the home folder, which contains the user's own programs.
session=$PWD
case $HOME/ in
"$PWD"/*) session=/nowhere ;;
esac
set -f
IFS=:
for folder in ${REKINDLE_BIN:+"${REKINDLE_BIN%/*}"} "$HOME/.local/bin" $PATH /opt/homebrew/bin /usr/local/bin; do
  case $folder/ in
  "$session"/*) ;;
  /*) [ -x "$folder/rekindle" ] && exec "$folder/rekindle" "$@" ;;
  esac
done

get="install it with: uv tool install rekindle-agents"
[ "$1" = hook ] || {
  echo "Rekindle is not installed: $get" >&2
  exit 127
}
case $3 in
SessionStart*) echo "{\"systemMessage\": \"Rekindle is not installed, so it does not record this session: $get\"}" ;;
esac
exit 0
