#!/bin/sh
# What the scripted builder "writes": stage N of a phase, into its clone. Usage: write.sh PHASE N
set -e
here=$(cd "$(dirname "$0")" && pwd)
cp "$here/stages/$1-$2/"*.py calc/
