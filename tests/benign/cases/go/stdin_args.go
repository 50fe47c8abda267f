// Standard input, arguments, flags, exit code.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	upper := flag.Bool("upper", false, "shout")
	times := flag.Int("n", 1, "how often")
	flag.Parse()
	fmt.Printf("%t %d %q\n", *upper, *times, flag.Args())
	lines := 0
	for scanner := bufio.NewScanner(os.Stdin); scanner.Scan(); lines++ {
		line := scanner.Text()
		if *upper {
			line = strings.ToUpper(line)
		}
		fmt.Println(strings.Repeat(line+";", *times))
	}
	defer fmt.Println("never printed")
	os.Exit(lines)
}
