package drayhorse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drayhorse/drayhorse/go"
)

// The arguments of the verbs of scenarios, decoded into the package's own types without losing anything.

// errNotSayable: the arguments cannot be written down with the types of the package.
var errNotSayable = errors.New("the package's types cannot say this")

// The arguments of verbs, with the package's own types wherever it has one.
type (
	idArgs struct {
		ID string `json:"id"`
	}
	nameArgs struct {
		Name string `json:"name"`
	}
	filterArgs struct {
		Filter drayhorse.Filter `json:"filter"`
	}
	listArgs struct {
		Filter  drayhorse.Filter `json:"filter"`
		Page    drayhorse.Page   `json:"page"`
		Payload bool             `json:"payload"`
	}
	waitArgs struct {
		ID        string `json:"id"`
		TimeoutMs int64  `json:"timeoutMs"`
	}
	cancelArgs struct {
		ID string `json:"id"`
		drayhorse.CancelOptions
	}
	previewArgs struct {
		Policy any `json:"policy"`
		drayhorse.PreviewOptions
	}
	// heldClaim is a kept claim; the reports need no more of it.
	heldClaim map[string]any
	claimArgs struct {
		Claim heldClaim `json:"claim"`
	}
	completeArgs struct {
		claimArgs
		Result any `json:"result"`
	}
	failArgs struct {
		claimArgs
		Error struct {
			Name    string `json:"name"`
			Message string `json:"message"`
		} `json:"error"`
		drayhorse.FailOptions
	}
	heartbeatArgs struct {
		Claims  []heldClaim `json:"claims"`
		LeaseMs int64       `json:"leaseMs"`
	}
	redriveArgs struct {
		ID     string            `json:"id"`
		Filter *drayhorse.Filter `json:"filter"`
		drayhorse.RedriveOptions
	}
	replayArgs struct {
		ID     string            `json:"id"`
		Filter *drayhorse.Filter `json:"filter"`
		drayhorse.ReplayOptions
	}
	previewReplayArgs struct {
		ID     string            `json:"id"`
		Filter *drayhorse.Filter `json:"filter"`
	}
	gateArgs struct {
		Name string `json:"name"`
		drayhorse.By
	}
	configureArgs struct {
		gateArgs
		RateLimit      *drayhorse.RateLimit       `json:"rateLimit"`
		MaxConcurrency *int                       `json:"maxConcurrency"`
		RetryPolicy    any                        `json:"retryPolicy"`
		Circuit        *drayhorse.CircuitSettings `json:"circuit"`
	}
	contractsArgs struct {
		Handlers []drayhorse.Handler `json:"handlers"`
	}
	pruneArgs struct {
		Limit int `json:"limit"`
	}
)

func (a claimArgs) claim() drayhorse.Claim {
	id, _ := a.Claim["id"].(string)
	fence, _ := a.Claim["fence"].(string)
	return drayhorse.Claim{ID: id, Fence: fence}
}

func (a configureArgs) queueConfig(args map[string]any) (drayhorse.QueueConfig, error) {
	config := drayhorse.QueueConfig{
		RateLimit: a.RateLimit, NoRateLimit: isNull(args, "rateLimit"),
		NoMaxConcurrency: isNull(args, "maxConcurrency"),
	}
	if a.MaxConcurrency != nil {
		config.MaxConcurrency = *a.MaxConcurrency
		if config.MaxConcurrency == 0 {
			return config, fmt.Errorf("%w: args.maxConcurrency", errNotSayable)
		}
	}
	return config, nil
}

func isNull(args map[string]any, key string) bool {
	value, given := args[key]
	return given && value == nil
}

// sayJob is a job as Go callers write it: a payload that is not there is NoPayload.
func sayJob(args map[string]any) (drayhorse.NewJob, error) {
	said, err := say[struct {
		Type    string                   `json:"type"`
		Payload any                      `json:"payload"`
		Options drayhorse.EnqueueOptions `json:"options"`
	}](args)
	job := drayhorse.NewJob{Type: said.Type, Payload: said.Payload, Options: said.Options}
	if _, given := args["payload"]; !given {
		job.Payload = drayhorse.NoPayload
	}
	return job, err
}

func saying[Args any](run func(context.Context, *drayhorse.Queue, Args) (any, error)) scenarioMethod {
	return func(ctx context.Context, queue *drayhorse.Queue, args map[string]any) (any, error) {
		said, err := say[Args](args)
		if err != nil {
			return nil, err
		}
		return run(ctx, queue, said)
	}
}

// say decodes arguments into the package's types and checks that nothing was lost on the way: an unknown key, another
// type, or a zero that a Go struct cannot tell from absent.
func say[Args any](args map[string]any) (Args, error) {
	var said Args
	text, err := json.Marshal(args)
	if err != nil {
		return said, err
	}
	if err := decodeStrictly(text, &said); err != nil {
		return said, fmt.Errorf("%w: %w", errNotSayable, err)
	}
	again, err := json.Marshal(said)
	if err != nil {
		return said, err
	}
	var survived any
	if err := drayhorse.Decode(again, &survived); err != nil {
		return said, err
	}
	if path := lost(args, survived, "args"); path != "" {
		return said, fmt.Errorf("%w: %s", errNotSayable, path)
	}
	return said, nil
}

// lost is the path of the first argument that did not survive, empty when all did.
func lost(given, survived any, path string) string {
	switch v := given.(type) {
	case map[string]any:
		object, _ := survived.(map[string]any)
		for key, inner := range v {
			kept, has := object[key]
			if !has {
				return path + "." + key
			}
			if at := lost(inner, kept, path+"."+key); at != "" {
				return at
			}
		}
		return ""
	case []any:
		elements, _ := survived.([]any)
		if len(elements) != len(v) {
			return path
		}
		for i := range v {
			if at := lost(v[i], elements[i], fmt.Sprintf("%s[%d]", path, i)); at != "" {
				return at
			}
		}
		return ""
	case string:
		if v == survived || sameTime(v, survived) {
			return ""
		}
		return path
	}
	if mismatch(given, survived, path) != "" {
		return path
	}
	return ""
}

// sameTime: times may be written in several ways.
func sameTime(given string, survived any) bool {
	text, _ := survived.(string)
	a, errA := time.Parse(time.RFC3339Nano, given)
	b, errB := time.Parse(time.RFC3339Nano, text)
	return errA == nil && errB == nil && a.Equal(b)
}
