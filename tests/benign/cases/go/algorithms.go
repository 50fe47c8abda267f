// Plain computing: sieve, matrices, recursion, sorting, a large output.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
)

func ackermann(m, n int) int {
	if m == 0 {
		return n + 1
	} else if n == 0 {
		return ackermann(m-1, 1)
	}
	return ackermann(m-1, ackermann(m, n-1))
}

func depth(n int) int {
	if n == 0 {
		return 0
	}
	return 1 + depth(n-1)
}

func main() {
	composite := make([]bool, 1000001)
	count := 0
	for n := 2; n < len(composite); n++ {
		if !composite[n] {
			count++
			for m := n * n; m < len(composite); m += n {
				composite[m] = true
			}
		}
	}
	fmt.Println(count, ackermann(2, 300), depth(1000000))
	const size = 120
	var a, b, c [size][size]float64
	for i := range a {
		for j := range a[i] {
			a[i][j], b[i][j] = float64(i+j), float64(i-j)
		}
	}
	for i := range c {
		for j := range c[i] {
			for k := range c {
				c[i][j] += a[i][k] * b[k][j]
			}
		}
	}
	fmt.Println(c[3][5], c[119][119])
	words := []string{"pear", "Fig", "apple", "kiwi"}
	sort.SliceStable(words, func(i, j int) bool { return len(words[i]) < len(words[j]) })
	fmt.Println(words, sort.SearchInts([]int{1, 3, 5}, 4))
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for n := 0; n < 30000; n++ {
		fmt.Fprintf(out, "%d %x\n", n, n*n)
	}
}
