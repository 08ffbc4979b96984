// go.go - goroutines that yield, with GOMAXPROCS=1. See workload.hpp; each measurement of the many
// has a process of its own there, and here as well: the program starts itself for it.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"sync"
	"time"
)

func require(condition bool, what string) {
	if !condition {
		fmt.Fprintln(os.Stderr, "wrong:", what)
		os.Exit(1)
	}
}

func two(yields int) float64 {
	var done sync.WaitGroup
	turns := [2]int{}
	done.Add(2)
	begun := time.Now()
	for i := 0; i < 2; i++ {
		go func(i int) {
			for n := 0; n < yields; n++ {
				runtime.Gosched()
				turns[i]++
			}
			done.Done()
		}(i)
	}
	done.Wait()
	took := time.Since(begun)
	require(turns[0]+turns[1] == 2*yields, "two")
	return float64(took.Nanoseconds()) / float64(2*yields)
}

// Also says how many turns were over when the clock started: the runtime may let goroutines run
// while others are still created.
func many(count int, inside bool) (float64, int) {
	var done sync.WaitGroup
	turns, early := 0, 0
	done.Add(count)
	begun := time.Now()
	for i := 0; i < count; i++ {
		go func() {
			turns++ // one thread, and nothing is preempted within so short a time
			runtime.Gosched()
			turns++
			done.Done()
		}()
	}
	if !inside {
		early = turns
		begun = time.Now()
	}
	done.Wait()
	took := time.Since(begun)
	require(turns == 2*count, "many")
	return float64(took.Nanoseconds()) / 1e6, early
}

func manyTimes(count int, inside bool) {
	at := "created before"
	if inside {
		at = "with creation"
	}
	row := func(temperature string, value float64, early int) {
		note := ""
		if early != 0 {
			note = ", \"note\": \"part of it ran before\""
		}
		fmt.Printf("{\"row\": \"Go, many\", \"at\": \"%s, %s\", \"unit\": \"ms\", \"value\": %g%s}\n",
			temperature, at, value, note)
	}
	value, early := many(count, inside)
	row("cold", value, early)
	early = 0
	var later []float64
	for i := 0; i < 7; i++ {
		value, earlier := many(count, inside)
		later = append(later, value)
		early += earlier
	}
	sort.Float64s(later)
	row("warm", later[3], early)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--help" {
		fmt.Println("go.go - goroutines that yield, with GOMAXPROCS=1. See workload.hpp; " +
			"each measurement of the many has a process of its own there, and here " +
			"as well: the program starts itself for it. Argument: --quick.")
		return
	}
	runtime.GOMAXPROCS(1)
	yields, count := 1000000, 10000
	var rest []string
	for _, word := range os.Args[1:] {
		if word == "--quick" {
			yields, count = 100, 100
		} else {
			rest = append(rest, word)
		}
	}
	if len(rest) == 1 {
		manyTimes(count, rest[0] == "inside")
		return
	}
	fmt.Printf("{\"about\": \"%s\"}\n", runtime.Version())
	two(yields / 10)
	fmt.Printf("{\"row\": \"Go, Gosched\", \"unit\": \"ns\", \"value\": %g}\n", two(yields))
	for _, how := range []string{"inside", "outside"} {
		child := exec.Command(os.Args[0], append(os.Args[1:], how)...)
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		require(child.Run() == nil, how)
	}
}
