// Goroutines, channels, select, wait groups, mutexes, contexts, pools.
package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

func produce(ctx context.Context) <-chan int {
	out := make(chan int)
	go func() {
		defer close(out)
		for n := 0; ; n++ {
			select {
			case out <- n:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func main() {
	jobs, results := make(chan int, 10), make(chan int, 10)
	var group sync.WaitGroup
	for w := 0; w < 4; w++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := range jobs {
				results <- n * n
			}
		}()
	}
	go func() {
		for n := 1; n <= 100; n++ {
			jobs <- n
		}
		close(jobs)
		group.Wait()
		close(results)
	}()
	var all []int
	for r := range results {
		all = append(all, r)
	}
	sort.Ints(all)
	fmt.Println(len(all), all[0], all[99])

	ctx, cancel := context.WithCancel(context.Background())
	sum := 0
	for n := range produce(ctx) {
		if sum += n; n == 100 {
			break
		}
	}
	cancel()
	fmt.Println(sum)

	var counter atomic.Int64
	var lock sync.Mutex
	seen := map[int]bool{}
	for n := 0; n < 1000; n++ {
		group.Add(1)
		go func(n int) {
			defer group.Done()
			counter.Add(int64(n))
			lock.Lock()
			defer lock.Unlock()
			seen[n%10] = true
		}(n)
	}
	group.Wait()
	fmt.Println(counter.Load(), len(seen))

	timed, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	select {
	case <-timed.Done():
		fmt.Println(errors.Is(timed.Err(), context.DeadlineExceeded))
	case <-time.After(10 * time.Second):
		fmt.Println("late")
	}
	var once sync.Once
	for n := 0; n < 3; n++ {
		once.Do(func() { fmt.Println("once") })
	}
	ticker := time.NewTicker(time.Millisecond)
	for n := 0; n < 3; n++ {
		<-ticker.C
	}
	ticker.Stop()
	fmt.Println("ticked")
}
