#!/usr/bin/env perl
# Prints what it is given, as it is given.
use strict;
local $/;
my $input = <STDIN>;
print join("|", @ARGV, $input // "");
