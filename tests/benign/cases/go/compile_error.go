// A program that the compiler refuses.
package main

import "fmt"

func main() {
	var count int = "text"
	fmt.Println(count, undefined)
}
