// A runtime error recovered, and the exit code when one is not.
package main

import (
	"fmt"
	"os"
)

type parseError struct{ line int }

func (e *parseError) Error() string { return fmt.Sprintf("line %d: cannot parse", e.line) }

func try(name string, f func()) {
	defer func() { fmt.Println(name, "->", recover()) }()
	f()
}

func main() {
	var m map[string]int
	var p *parseError
	zero, list := 0, []int{1}
	try("nil map", func() { m["x"] = 1 })
	try("nil pointer", func() { p.line++ })
	try("index", func() { list[len(list)] = 1 })
	try("division", func() { zero = 1 / zero })
	try("conversion", func() { _ = any("text").(int) })
	try("custom", func() { panic(&parseError{7}) })
	fmt.Fprintln(os.Stderr, "leaving:", &parseError{9})
	os.Exit(2)
}
