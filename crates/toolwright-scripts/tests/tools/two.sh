#!/bin/bash
# @describe Two programs.
# @cmd The first
first() { :; }
