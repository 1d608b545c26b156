package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ticks is the kernel's USER_HZ: what /proc counts CPU time in. It is 100 on every architecture that Go runs on.
const ticks = 100

// cpuSeconds is the CPU time of a process and all its threads so far (proc(5): fields 14 and 15 of stat), 0 for none.
func cpuSeconds(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is the command in brackets, which may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(string(fields[11]), 64)
	system, _ := strconv.ParseFloat(string(fields[12]), 64)
	return (user + system) / ticks
}

// machineSeconds is the CPU time that everything on the machine has used.
func machineSeconds() float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	var user, nice, system float64
	if _, err := fmt.Sscanf(string(text), "cpu %f %f %f", &user, &nice, &system); err != nil {
		return 0
	}
	return (user + nice + system) / ticks
}

// peakMemory is a process's largest resident size in MiB, 0 when it is not known.
func peakMemory(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, ok := bytes.Cut(text, []byte("VmHWM:"))
	fields := bytes.Fields(after)
	if !ok || len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.Atoi(string(fields[0]))
	return kib / 1024
}
