#!/usr/bin/env bash
# The man page formats without warnings, if a formatter is installed.
command -v groff >/dev/null || { echo 'no groff' >&2; exit 77; }
edgewise help --format man >commands
{ echo '.TH EDGEWISE 1'; cat commands; } | groff -man -Tascii -P-cbou -ww >page 2>complaints
[ ! -s complaints ] || { cat complaints; exit 1; }
grep -q 'edgewise version' page
