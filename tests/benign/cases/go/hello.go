// Printing, formatting verbs, unicode, both streams.
package main

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"
)

type point struct {
	X, Y int
	Name string
}

func main() {
	fmt.Println("hi", 42, 2.5, true, nil, []int{1, 2}, map[string]int{"b": 2, "a": 1})
	p := point{1, -2, "žár"}
	fmt.Printf("%v %+v %#v %T %q %x %08.3f %-5d| %5t %c %U\n", p, p, p, p, "a\"b", "hex", 3.14159, 42, true, '世', '🧪')
	fmt.Println(utf8.RuneCountInString("žluť"), len("žluť"), strings.ToUpper("straße"), []byte("é"), []rune("é"))
	for i, r := range "aé🧪" {
		fmt.Print(i, ":", string(r), " ")
	}
	fmt.Println(strings.Repeat("=", 10), strings.Fields(" a  b "), strings.Split("x,y", ","))
	fmt.Fprintln(os.Stderr, "to stderr")
}
