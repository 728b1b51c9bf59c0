# part of the one Makefile; see Makefile.am
