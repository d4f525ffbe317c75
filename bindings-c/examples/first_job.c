/* The first job from C: connect, migrate, enqueue, run one worker until the job has ended, print its outcome.
 *
 *   cc first_job.c $(pkg-config --cflags --libs drayhorse) -o first_job
 *   ./first_job embedded:./.drayhorse
 *
 * A program for real would read the JSON with a library; two lookups by name are enough here. */

#include <drayhorse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints the error in `out` and ends the program, unless the status is 0. */
static void check(int32_t status, const char *what, struct DhBuffer *out)
{
    if (status == 0)
        return;
    fprintf(stderr, "%s: status %d: %.*s\n", what, (int)status, (int)out->len, (const char *)out->ptr);
    dh_buffer_free(out);
    exit(1);
}

static const uint8_t *bytes(const char *text)
{
    return (const uint8_t *)text;
}

/* One control call; the caller frees `out`. */
static void call(uint64_t client, const char *verb, const char *args, struct DhBuffer *out)
{
    check(dh_client_call(client, bytes(verb), strlen(verb), bytes(args), strlen(args), out), verb, out);
}

/* Copies the member `name` of a JSON text, a string without its quotes or a number. Returns 0 when there is none. */
static int find(const struct DhBuffer *json, const char *name, char *into, size_t room)
{
    size_t skip = strlen(name) + 2, i, length = 0;
    for (i = 0; i + skip < json->len; i++) {
        if (json->ptr[i] != '"' || memcmp(json->ptr + i + 1, name, skip - 2) != 0 || json->ptr[i + skip - 1] != '"')
            continue;
        for (i += skip; i < json->len && strchr(": \"", json->ptr[i]); i++)
            ;
        for (; i < json->len && length + 1 < room && !strchr("\",}", json->ptr[i]); i++)
            into[length++] = (char)json->ptr[i];
        into[length] = '\0';
        return 1;
    }
    return 0;
}

/* Does the work of one job and reports it; 0 when the event is no job. A failure would be
 * {"handle":1,"verb":"fail","error":{"name":"Refused","message":"..."}}. */
static int run_job(uint64_t worker, const struct DhBuffer *events)
{
    struct DhBuffer out = DH_BUFFER_INIT;
    char event[32], handle[32], report[128];
    if (!find(events, "event", event, sizeof event) || strcmp(event, "job") != 0)
        return 0;
    if (!find(events, "handle", handle, sizeof handle))
        return 0;
    snprintf(report, sizeof report, "[{\"handle\":%s,\"verb\":\"complete\",\"result\":{\"rows\":3}}]", handle);
    check(dh_worker_report(worker, bytes(report), strlen(report), &out), "report", &out);
    dh_buffer_free(&out);
    return 1;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "embedded:./.drayhorse";
    const char *options = argc > 2 ? argv[2] : "{}";
    const char *worker_options = "{\"handlers\":[{\"type\":\"provider.sync\",\"version\":\"1\"}],\"concurrency\":4}";
    struct DhBuffer out = DH_BUFFER_INIT;
    uint64_t client = 0, worker = 0;
    char id[64], args[128], state[32] = "";
    int waits, done = 0;

    if (dh_abi_version() != DH_ABI_VERSION) {
        fprintf(stderr, "the library has ABI %u, its header %d\n", (unsigned)dh_abi_version(), DH_ABI_VERSION);
        return 1;
    }
    check(dh_client_connect(bytes(url), strlen(url), bytes(options), strlen(options), &client, &out), "connect", &out);
    dh_buffer_free(&out);
    call(client, "migrate", "{}", &out);
    dh_buffer_free(&out);
    call(client, "enqueue", "{\"type\":\"provider.sync\",\"payload\":{\"accountId\":7}}", &out);
    if (!find(&out, "id", id, sizeof id))
        return 1;
    dh_buffer_free(&out);
    printf("enqueued %s\n", id);

    check(dh_worker_start(client, bytes(worker_options), strlen(worker_options), &worker, &out), "start", &out);
    dh_buffer_free(&out);
    for (waits = 0; waits < 10 && !done; waits++) {
        check(dh_worker_take(worker, 1, 1000, &out), "take", &out);
        done = run_job(worker, &out);
        dh_buffer_free(&out);
    }

    snprintf(args, sizeof args, "{\"id\":\"%s\",\"timeoutMs\":10000}", id);
    call(client, "wait", args, &out);
    find(&out, "state", state, sizeof state);
    printf("%s: %.*s\n", state, (int)out.len, (const char *)out.ptr);
    dh_buffer_free(&out);

    check(dh_worker_close(worker, &out), "close the worker", &out);
    dh_buffer_free(&out);
    dh_worker_free(worker);
    check(dh_client_close(client, &out), "close", &out);
    dh_buffer_free(&out);
    dh_client_free(client);
    return strcmp(state, "succeeded") == 0 ? 0 : 1;
}
