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

# A program in the session's folder or in the outermost git repository around it is not used, because
# the agent could have written it. The home folder also contains the user's own programs.
unset CDPATH
home=${HOME:+$(cd -P "$HOME" 2>/dev/null && pwd -P)}
find_workspace() {
  workspace=/nowhere
  folder=$(cd -P "$1" 2>/dev/null && pwd -P)
  while [ -n "$folder" ]; do
    case $home/ in
    "$folder"/*) break ;;
    esac
    if [ "$workspace" = /nowhere ] || [ -e "$folder/.git" ]; then workspace=$folder; fi
    folder=${folder%/*}
  done
}
find_workspace .
session=$workspace
find_workspace "${CLAUDE_PROJECT_DIR:-${GEMINI_PROJECT_DIR:-.}}"
set -f
IFS=:
for folder in "$HOME/.local/bin" $PATH /opt/homebrew/bin /usr/local/bin; do
  case $folder in
  /*) folder=$(cd -P "$folder" 2>/dev/null && pwd -P) || continue ;;
  *) continue ;;
  esac
  case $folder/ in
  "$session"/* | "$workspace"/*) ;;
  *) [ -x "$folder/rekindle" ] && exec "$folder/rekindle" "$@" ;;
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
