// go.go - the case `forkjoin` with goroutines and WaitGroup. See workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

func require(condition bool, what string) {
	if !condition {
		fmt.Fprintln(os.Stderr, "wrong:", what)
		os.Exit(1)
	}
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	var a, b int
	var done sync.WaitGroup
	done.Add(2)
	go func() { a = fib(n - 1); done.Done() }()
	go func() { b = fib(n - 2); done.Done() }()
	done.Wait()
	return a + b
}

func tree(first, size int) int {
	if size == 1 {
		return first
	}
	var parts [10]int
	var done sync.WaitGroup
	done.Add(10)
	for i := 0; i < 10; i++ {
		i := i
		go func() {
			parts[i] = tree(first+i*(size/10), size/10)
			done.Done()
		}()
	}
	done.Wait()
	sum := 0
	for _, part := range parts {
		sum += part
	}
	return sum
}

func fibAlone(n int) int {
	a, b := 0, 1
	for ; n > 0; n-- {
		a, b = b, a+b
	}
	return a
}

func report(row string, workers int, took time.Duration) {
	fmt.Printf("{\"row\": \"Go, %s\", \"at\": \"P = %d\", \"unit\": \"ms\", \"value\": %f}\n",
		row, workers, float64(took.Nanoseconds())/1e6)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--help" {
		fmt.Println("go.go - the case forkjoin with goroutines and WaitGroup. See workload.hpp. " +
			"The only argument is --quick.")
		return
	}
	n, size := 30, 1000000
	if len(os.Args) > 1 {
		require(len(os.Args) == 2 && os.Args[1] == "--quick", "the only argument is --quick")
		n, size = 10, 1000
	}
	fmt.Printf("{\"about\": \"%s\"}\n", runtime.Version())
	for _, workers := range []int{1, 2} {
		runtime.GOMAXPROCS(workers)
		for round := 0; round < 2; round++ {
			begun := time.Now()
			result := fib(n)
			took := time.Since(begun)
			require(result == fibAlone(n), "fib")
			if round == 1 {
				report("fib", workers, took)
			}
		}
		for round := 0; round < 2; round++ {
			begun := time.Now()
			result := tree(0, size)
			took := time.Since(begun)
			require(result == size*(size-1)/2, "the sum of the tree")
			if round == 1 {
				report("skynet", workers, took)
			}
		}
	}
}
