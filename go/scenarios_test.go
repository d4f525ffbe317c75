package drayhorse_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/drayhorse/drayhorse/go"
)

// The runner of tests/scenarios, whose README.md says what a step means. Scenarios are the same for every language, so
// nothing here knows what one of them is about.

// scenarioFile is one topic.
type scenarioFile struct {
	Topic     string     `json:"topic"`
	Protocol  bool       `json:"protocol"`
	Note      string     `json:"note"`
	Scenarios []scenario `json:"scenarios"`
	name      string
}

type scenario struct {
	Name  string   `json:"name"`
	Rules []string `json:"rules"`
	Note  string   `json:"note"`
	Steps []step   `json:"steps"`
}

// step is a call, a work or an advanceClock. A raw message that is nil was not given; JSON null was.
type step struct {
	Note         string          `json:"note"`
	Call         string          `json:"call"`
	Args         json.RawMessage `json:"args"`
	As           string          `json:"as"`
	Expect       json.RawMessage `json:"expect"`
	Error        string          `json:"error"`
	Details      json.RawMessage `json:"details"`
	AdvanceClock int64           `json:"advanceClock"`
	Work         json.RawMessage `json:"work"`
}

// scenarioLanes bounds the scenarios that run at once: most of their time is spent waiting for the database.
const scenarioLanes = 6

func TestScenarios(t *testing.T) {
	type one struct {
		file     string
		scenario scenario
	}
	queue := make(chan one)
	results := newScenarioResults(t)
	var lanes sync.WaitGroup
	for range scenarioLanes {
		lanes.Add(1)
		go func() {
			defer lanes.Done()
			for next := range queue {
				passed := t.Run(next.file+"/"+next.scenario.Name, func(t *testing.T) { runScenario(t, next.scenario) })
				results.add(next.file, next.scenario.Name, passed)
			}
		}()
	}
	for _, file := range scenarioFiles(t) {
		for _, scenario := range file.Scenarios {
			queue <- one{file.name, scenario}
		}
	}
	close(queue)
	lanes.Wait()
}

// scenarioFiles reads every topic; a key that the README does not know is refused, so that no step is half executed.
func scenarioFiles(t *testing.T) []scenarioFile {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "tests", "scenarios", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios in ../tests/scenarios (%v)", err)
	}
	files := make([]scenarioFile, len(paths))
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := decodeStrictly(text, &files[i]); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		files[i].name = filepath.Base(path)
	}
	return files
}

// runScenario executes the steps of one scenario in a schema of its own.
func runScenario(t *testing.T, s scenario) {
	play := scenarioPlay{queue: newQueue(t, drayhorse.WithPoolSize(2)), kept: map[string]any{}}
	for i, step := range s.Steps {
		if err := play.run(t, step); err != nil {
			t.Fatalf("step %d, %s: %v", i+1, step.title(), err)
		}
	}
}

func (s step) title() string {
	switch {
	case s.Work != nil:
		return "work"
	case s.Call != "":
		return s.Call
	}
	return "advanceClock"
}

// scenarioPlay is a scenario on its way: its queue and the answers that it keeps.
type scenarioPlay struct {
	queue *drayhorse.Queue
	kept  map[string]any
}

func (p *scenarioPlay) run(t *testing.T, s step) error {
	ctx := testContext(t)
	var answer any
	var err error
	switch {
	case s.Work != nil:
		answer, err = p.work(t, s.Work)
	case s.Call != "":
		answer, err = p.call(ctx, s)
	default:
		err = p.queue.Call(ctx, "advanceClock", map[string]int64{"ms": s.AdvanceClock}, nil)
	}
	switch {
	case s.Error != "":
		return p.refusal(s, answer, err)
	case err != nil:
		return err
	}
	if s.As != "" {
		p.kept[s.As] = answer
	}
	return p.expect(s.Expect, answer)
}

// call runs a control verb by its method of the package. What a caller of the package cannot write down at all, an
// unknown option for example, goes past the types; that is only right where the answer must be an error.
func (p *scenarioPlay) call(ctx context.Context, s step) (any, error) {
	given, err := p.filled(s.Args)
	if err != nil {
		return nil, err
	}
	args, ok := given.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("args is %T, not an object", given)
	}
	method, known := scenarioMethods[s.Call]
	if known {
		answer, err := method(ctx, p.queue, args)
		if !errors.Is(err, errNotSayable) {
			return plain(answer), err
		}
		if s.Error == "" {
			return nil, err
		}
	} else if !handlerVerbs[s.Call] {
		return nil, fmt.Errorf("the runner knows no method for it")
	}
	var answer any
	err = p.queue.Call(ctx, s.Call, args, &answer)
	return answer, err
}

// refusal compares an error with the one that a step must end with.
func (p *scenarioPlay) refusal(s step, answer any, err error) error {
	var typed *drayhorse.Error
	switch {
	case err == nil:
		return fmt.Errorf("answered %s, must fail with %s", shown(answer), s.Error)
	case !errors.As(err, &typed) || string(typed.Code) != s.Error:
		return fmt.Errorf("must fail with %s: %w", s.Error, err)
	}
	if err := p.expect(s.Details, plain(typed.Details)); err != nil {
		return fmt.Errorf("details of %w: %w", typed, err)
	}
	return nil
}

func (p *scenarioPlay) expect(pattern json.RawMessage, answer any) error {
	if pattern == nil {
		return nil
	}
	wanted, err := p.filled(pattern)
	if err != nil {
		return err
	}
	if why := mismatch(wanted, answer, "answer"); why != "" {
		return fmt.Errorf("%s, in %s", why, shown(answer))
	}
	return nil
}

// filled decodes JSON with kept answers and generated values in their places.
func (p *scenarioPlay) filled(text json.RawMessage) (any, error) {
	if text == nil {
		return map[string]any{}, nil
	}
	var value any
	if err := drayhorse.Decode(text, &value); err != nil {
		return nil, err
	}
	return fill(value, p.kept)
}

// shown is a value for a person, cut where it is long.
func shown(value any) string {
	text, err := json.Marshal(unmarked(value))
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(text) > 2000 {
		return string(text[:2000]) + "…"
	}
	return string(text)
}

// decodeStrictly refuses keys without a field and text behind the value.
func decodeStrictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}

// scenarioResults is the file in which tests/scenarios/report.py finds what ran, if a run wants it.
type scenarioResults struct {
	mu   sync.Mutex
	file *os.File
	t    *testing.T
}

func newScenarioResults(t *testing.T) *scenarioResults {
	t.Helper()
	folder := os.Getenv("DRAYHORSE_SCENARIO_RESULTS")
	if folder == "" {
		return &scenarioResults{}
	}
	file, err := os.OpenFile(filepath.Join(folder, "go.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return &scenarioResults{file: file, t: t}
}

func (r *scenarioResults) add(file, name string, passed bool) {
	if r.file == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	line, err := json.Marshal(map[string]any{"file": file, "name": name, "passed": passed})
	if err == nil {
		_, err = r.file.WriteString(strings.TrimSpace(string(line)) + "\n")
	}
	if err != nil {
		r.t.Error(err)
	}
}
