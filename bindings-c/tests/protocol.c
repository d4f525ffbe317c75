/* The rules of the ABI, one after another: `protocol URL OPTIONS`. Exits 0 when every one held. */

#include <drayhorse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK = 0, INVALID_ARGUMENT = 1, PAYLOAD_INVALID = 2, CLOSED = 20 };

static int failures;

#define EXPECT(what, holds)                                              \
    do {                                                                 \
        if (!(holds)) {                                                  \
            failures++;                                                  \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, what, #holds); \
        }                                                                \
    } while (0)

#define TEXT(t) (const uint8_t *)(t), strlen(t)

static struct DhBuffer out = DH_BUFFER_INIT;
/* A copy of the last answer with a NUL for strstr. */
static char answer[65536];

/* Keeps the answer and frees the buffer, so that a leak or a double free shows under the sanitizer. */
static int32_t kept(int32_t status)
{
    size_t len = out.len < sizeof answer - 1 ? out.len : sizeof answer - 1;
    if (len > 0)
        memcpy(answer, out.ptr, len);
    answer[len] = '\0';
    dh_buffer_free(&out);
    dh_buffer_free(&out);
    return status;
}

static int says(const char *part)
{
    if (strstr(answer, part))
        return 1;
    fprintf(stderr, "no %s in: %s\n", part, answer);
    return 0;
}

static int32_t call(uint64_t client, const char *verb, const char *args)
{
    return kept(dh_client_call(client, TEXT(verb), TEXT(args), &out));
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The text of a string member of the last answer. */
static void member(const char *name, char *into, size_t room)
{
    char before[64];
    const char *start;
    size_t length;
    snprintf(before, sizeof before, "\"%s\"", name);
    start = strstr(answer, before);
    into[0] = '\0';
    if (!start)
        return;
    start += strlen(before);
    start += strspn(start, ": \"");
    length = strcspn(start, "\"");
    if (length < room) {
        memcpy(into, start, length);
        into[length] = '\0';
    }
}

static void without_a_client(void)
{
    uint64_t client = 7;
    EXPECT("one ABI", dh_abi_version() == DH_ABI_VERSION);
    EXPECT("a version", kept(dh_version(&out)) == OK && answer[0] == '"');
    EXPECT("the table", kept(dh_error_table(&out)) == OK && says("\"lease_lost\"") && says("\"number\":20"));
    EXPECT("null discards", dh_error_table(NULL) == OK);
    EXPECT("never a handle", call(0, "counts", "{}") == CLOSED && says("\"code\":\"closed\""));
    EXPECT("never a handle", call(UINT64_MAX, "counts", "{}") == CLOSED);
    EXPECT("a bad URL", kept(dh_client_connect(TEXT("mysql://x"), TEXT("{}"), &client, &out)) == INVALID_ARGUMENT);
    EXPECT("no handle on failure", client == 0);
    EXPECT("no place for the handle", kept(dh_client_connect(TEXT("mysql://x"), TEXT(""), NULL, &out)) == INVALID_ARGUMENT);
    EXPECT("a null input", kept(dh_client_connect(NULL, 5, NULL, 0, &client, &out)) == INVALID_ARGUMENT && says("\"url\""));
    EXPECT("no UTF-8", kept(dh_client_connect(TEXT("a\xff"), TEXT("{}"), &client, &out)) == INVALID_ARGUMENT && says("offset"));
    dh_buffer_free(NULL);
    dh_client_free(0);
    dh_worker_free(12345);
}

static void calls(uint64_t client)
{
    char id[64], args[256];
    uint64_t worker = 0;
    EXPECT("an unknown verb", call(client, "nonsense", "{}") == INVALID_ARGUMENT);
    EXPECT("no JSON", call(client, "counts", "{") == PAYLOAD_INVALID);
    EXPECT("a client is no worker", kept(dh_worker_health(client, &out)) == INVALID_ARGUMENT);
    EXPECT("a client is no worker", (dh_worker_free(client), call(client, "migrate", "{}")) == OK);
    EXPECT("enqueue", call(client, "enqueue", "{\"type\":\"c.test\",\"payload\":{\"n\":18446744073709551615}}") == OK);
    member("id", id, sizeof id);
    snprintf(args, sizeof args, "{\"id\":\"%s\"}", id);
    EXPECT("digits survive", call(client, "get", args) == OK && says("18446744073709551615"));
    EXPECT("no such job", call(client, "get", "{\"id\":\"01890a5d-ac96-774b-bcce-b302099a8057\"}") == OK && says("null"));
    EXPECT("a statement", call(client, "enqueueStatement", "{\"jobs\":[{\"type\":\"c.test\"}]}") == OK && says("\"params\""));
    EXPECT("worker options", kept(dh_worker_start(client, TEXT("{\"concurrency\":-1}"), &worker, &out)) == INVALID_ARGUMENT);
    EXPECT("no handle on failure", worker == 0);
}

static void submitted_calls(uint64_t client)
{
    int seen = 0, i;
    for (i = 1; i <= 50; i++)
        EXPECT("submit", kept(dh_client_submit(client, (uint64_t)i, TEXT("counts"), TEXT("{\"filter\":{}}"), &out)) == OK);
    while (seen < 50) {
        const char *at;
        if (kept(dh_client_next_completions(client, 7, 10000, &out)) != OK || !strcmp(answer, "[]"))
            break;
        for (i = 0, at = answer; (at = strstr(at, "\"ticket\":")) != NULL; at++, i++)
            ;
        EXPECT("at most as many as asked", i <= 7);
        seen += i;
        EXPECT("no error", strstr(answer, "\"error\"") == NULL);
    }
    EXPECT("all came", seen == 50);
    EXPECT("none is left", kept(dh_client_next_completions(client, 7, 0, &out)) == OK && !strcmp(answer, "[]"));
    EXPECT("none asked", kept(dh_client_next_completions(client, 0, 0, &out)) == INVALID_ARGUMENT);

    EXPECT("a failing call", kept(dh_client_submit(client, 99, TEXT("wait"),
        TEXT("{\"id\":\"01890a5d-ac96-774b-bcce-b302099a8057\",\"timeoutMs\":1}"), &out)) == OK);
    EXPECT("its error", kept(dh_client_next_completions(client, 7, 10000, &out)) == OK && says("\"ticket\":99,\"error\""));
    EXPECT("an ended call", kept(dh_client_cancel(client, 99, &out)) == OK && !strcmp(answer, "false"));
    EXPECT("an unknown ticket", kept(dh_client_cancel(client, 12345, &out)) == OK && !strcmp(answer, "false"));
}

/* More calls than connections: the last ones wait in the queue and can be taken out of it. */
static void canceled_calls(uint64_t client)
{
    char id[64], args[256];
    int canceled = 0, seen = 0, i;
    EXPECT("enqueue", call(client, "enqueue", "{\"type\":\"c.never\"}") == OK);
    member("id", id, sizeof id);
    snprintf(args, sizeof args, "{\"id\":\"%s\",\"timeoutMs\":1500}", id);
    for (i = 1; i <= 30; i++)
        EXPECT("submit", kept(dh_client_submit(client, (uint64_t)i, TEXT("wait"), TEXT(args), &out)) == OK);
    EXPECT("a ticket in use", kept(dh_client_submit(client, 30, TEXT("counts"), TEXT("{}"), &out)) == INVALID_ARGUMENT);
    for (i = 1; i <= 30; i++) {
        EXPECT("cancel", kept(dh_client_cancel(client, (uint64_t)i, &out)) == OK);
        canceled += !strcmp(answer, "true");
    }
    while (seen < 30) {
        const char *at;
        if (kept(dh_client_next_completions(client, 100, 10000, &out)) != OK || !strcmp(answer, "[]"))
            break;
        for (at = answer; (at = strstr(at, "\"ticket\":")) != NULL; at++)
            seen++;
    }
    EXPECT("each has a completion", seen == 30);
    printf("%d of 30 calls were taken out of the queue\n", canceled);
}

static void one_job(uint64_t client)
{
    const char *options = "{\"handlers\":[{\"type\":\"c.work\",\"version\":\"1\"}],\"concurrency\":2,\"graceMs\":1000}";
    char id[64], args[256], handle[32];
    uint64_t worker = 0;
    int i;
    EXPECT("enqueue", call(client, "enqueue", "{\"type\":\"c.work\",\"payload\":{\"a\":1}}") == OK);
    member("id", id, sizeof id);
    EXPECT("start", kept(dh_worker_start(client, TEXT(options), &worker, &out)) == OK && worker != 0);
    EXPECT("a worker is no client", call(worker, "counts", "{}") == INVALID_ARGUMENT);
    EXPECT("health", kept(dh_worker_health(worker, &out)) == OK && says("\"phase\":\"running\""));
    EXPECT("none asked", kept(dh_worker_take(worker, 0, 0, &out)) == INVALID_ARGUMENT);
    EXPECT("the job", kept(dh_worker_take(worker, 10, 10000, &out)) == OK && says("\"event\":\"job\"") && says(id));
    {
        const char *at = strstr(answer, "\"handle\":");
        snprintf(handle, sizeof handle, "%ld", at ? atol(at + 9) : -1L);
    }
    snprintf(args, sizeof args, "{\"handle\":%s,\"name\":\"fetch\",\"value\":[1,2]}", handle);
    EXPECT("save", kept(dh_worker_call(worker, TEXT("checkpointPut"), TEXT(args), &out)) == OK);
    snprintf(args, sizeof args, "{\"handle\":%s,\"name\":\"fetch\"}", handle);
    EXPECT("read", kept(dh_worker_submit(worker, 5, TEXT("checkpointGet"), TEXT(args), &out)) == OK);
    EXPECT("its completion", kept(dh_worker_take(worker, 10, 10000, &out)) == OK && says("\"event\":\"completion\",\"ticket\":5,\"ok\":"));
    EXPECT("reports", kept(dh_worker_report(worker, TEXT("nonsense"), &out)) == INVALID_ARGUMENT);
    snprintf(args, sizeof args, "[{\"handle\":%s,\"verb\":\"complete\",\"result\":{\"ok\":true}}]", handle);
    EXPECT("report", kept(dh_worker_report(worker, TEXT(args), &out)) == OK);
    snprintf(args, sizeof args, "{\"id\":\"%s\",\"timeoutMs\":10000}", id);
    EXPECT("the outcome", call(client, "wait", args) == OK && says("\"succeeded\"") && says("\"ok\""));
    EXPECT("stop", kept(dh_worker_stop(worker, &out)) == OK);
    for (i = 0; i < 20; i++)
        if (kept(dh_worker_take(worker, 10, 1000, &out)) != OK || strstr(answer, "\"stopped\""))
            break;
    EXPECT("stopped", says("\"event\":\"stopped\""));
    EXPECT("close", kept(dh_worker_close(worker, &out)) == OK);
    EXPECT("close twice", kept(dh_worker_close(worker, &out)) == OK);
    EXPECT("nothing after close", kept(dh_worker_take(worker, 10, 10000, &out)) == CLOSED);
    dh_worker_free(worker);
    EXPECT("freed", kept(dh_worker_health(worker, &out)) == CLOSED);
    dh_worker_free(worker);
}

static uint64_t waiting_client;

static void *wait_for_completions(void *status)
{
    struct DhBuffer mine = DH_BUFFER_INIT;
    *(int32_t *)status = dh_client_next_completions(waiting_client, 10, 600000, &mine);
    dh_buffer_free(&mine);
    return NULL;
}

static void closing(const char *url, const char *options)
{
    pthread_t waiter;
    int32_t status = -1;
    uint64_t client = 0, second = 0, worker = 0;
    int64_t before;
    const char *worker_options = "{\"handlers\":[{\"type\":\"c.other\",\"version\":\"1\"}]}";
    EXPECT("connect", kept(dh_client_connect(TEXT(url), TEXT(options), &client, &out)) == OK);
    waiting_client = client;
    EXPECT("thread", pthread_create(&waiter, NULL, wait_for_completions, &status) == 0);
    EXPECT("close", kept(dh_client_close(client, &out)) == OK);
    EXPECT("thread", pthread_join(waiter, NULL) == 0);
    EXPECT("the waiter is told", status == CLOSED);
    EXPECT("close twice", kept(dh_client_close(client, &out)) == OK);
    EXPECT("closed", call(client, "counts", "{}") == CLOSED);
    EXPECT("closed", kept(dh_client_submit(client, 1, TEXT("counts"), TEXT("{}"), &out)) == CLOSED);
    dh_client_free(client);
    EXPECT("freed", kept(dh_client_close(client, &out)) == CLOSED);
    EXPECT("connect", kept(dh_client_connect(TEXT(url), TEXT(options), &second, &out)) == OK);
    EXPECT("the old handle stays dead", second != client && call(client, "counts", "{}") == CLOSED);

    EXPECT("start", kept(dh_worker_start(second, TEXT(worker_options), &worker, &out)) == OK);
    waiting_client = second;
    EXPECT("thread", pthread_create(&waiter, NULL, wait_for_completions, &status) == 0);
    before = now_ms();
    dh_worker_free(worker);
    dh_client_free(second);
    EXPECT("free never blocks", now_ms() - before < 200);
    EXPECT("thread", pthread_join(waiter, NULL) == 0);
    EXPECT("the waiter is told", status == CLOSED);
}

int main(int argc, char **argv)
{
    uint64_t client = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: protocol URL OPTIONS\n");
        return 2;
    }
    without_a_client();
    EXPECT("connect", kept(dh_client_connect(TEXT(argv[1]), TEXT(argv[2]), &client, &out)) == OK);
    calls(client);
    submitted_calls(client);
    canceled_calls(client);
    one_job(client);
    EXPECT("close", kept(dh_client_close(client, &out)) == OK);
    dh_client_free(client);
    closing(argv[1], argv[2]);
    if (failures > 0)
        fprintf(stderr, "%d rules were broken\n", failures);
    return failures > 0;
}
