// go.go - parked goroutines, GOMAXPROCS=1. See workload.hpp; each number has a process of its own.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

func residentKiB() int {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if words := strings.Fields(lines.Text()); words[0] == "VmRSS:" {
			value, _ := strconv.Atoi(words[1])
			return value
		}
	}
	return 0
}

func play(count int, at string) {
	var ready, done sync.WaitGroup
	gate := make(chan struct{})
	ended := 0
	ready.Add(count)
	done.Add(count)
	before := residentKiB()
	begun := time.Now()
	for i := 0; i < count; i++ {
		go func() {
			ready.Done()
			<-gate
			ended++ // one thread
			done.Done()
		}()
	}
	ready.Wait()
	took := time.Since(begun)
	bytes := float64(residentKiB()-before) * 1024 / float64(count)
	close(gate)
	done.Wait()
	if ended != count {
		fmt.Fprintln(os.Stderr, "wrong: goroutines that ended")
		os.Exit(1)
	}
	fmt.Printf("{\"row\": \"Go\", \"at\": \"%s\", \"unit\": \"B\", \"value\": %g}\n", at, bytes)
	fmt.Printf("{\"row\": \"Go, time\", \"at\": \"%s\", \"unit\": \"ns\", \"value\": %g}\n", at,
		float64(took.Nanoseconds())/float64(count))
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--help" {
		fmt.Println("go.go - parked goroutines, GOMAXPROCS=1. See workload.hpp; each number " +
			"has a process of its own. Argument: --quick.")
		return
	}
	runtime.GOMAXPROCS(1)
	quick := len(os.Args) > 1 && os.Args[len(os.Args)-1] == "--quick"
	if len(os.Args) > 2 {
		count, _ := strconv.Atoi(strings.ReplaceAll(os.Args[1], ",", ""))
		if quick {
			count = 1000
		}
		play(count, os.Args[1])
		return
	}
	fmt.Printf("{\"about\": \"%s\"}\n", runtime.Version())
	for _, at := range []string{"100,000", "1,000,000"} {
		last := "--full"
		if quick {
			last = "--quick"
		}
		child := exec.Command(os.Args[0], at, last)
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if child.Run() != nil {
			os.Exit(1)
		}
	}
}
