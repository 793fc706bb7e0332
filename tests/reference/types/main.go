// Command types reads objects and writes them again by the reference's Go types, as each of its Go clients does.
//
//	types round   one object a line in; one line out for each: the object as the types write it again, the fields that
//	              they do not know, or why it does not decode at all
//	types fill    objects out, in which every field that the types know is set
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	switch {
	case len(args) == 1 && args[0] == "round":
		return round(os.Stdin, lines)
	case len(args) == 1 && args[0] == "fill":
		return fill(lines)
	default:
		return fmt.Errorf("usage: types round|fill")
	}
}
