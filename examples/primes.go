// The number of primes below 100,000: compiled in the sandbox, then run.
package main

import "fmt"

func main() {
	const limit = 100_000
	composite := make([]bool, limit)
	count := 0
	for n := 2; n < limit; n++ {
		if composite[n] {
			continue
		}
		count++
		for m := n * n; m < limit; m += n {
			composite[m] = true
		}
	}
	fmt.Printf("%d primes below %d\n", count, limit)
}
