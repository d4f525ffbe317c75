/* Control calls for a program at the other end of the pipes: `calls URL OPTIONS`. A line of input is a verb, a tab and
 * its arguments; a line of output the status, a tab and the answer. The first line of output is the connect's. */

#define _POSIX_C_SOURCE 200809L

#include <drayhorse.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Prints the answer of a call and frees it. */
static int32_t tell(int32_t status, struct DhBuffer *answer)
{
    printf("%" PRId32 "\t", status);
    if (answer->len > 0)
        fwrite(answer->ptr, 1, answer->len, stdout);
    putchar('\n');
    fflush(stdout);
    dh_buffer_free(answer);
    return status;
}

int main(int argc, char **argv)
{
    struct DhBuffer answer = DH_BUFFER_INIT;
    uint64_t client = 0;
    char *line = NULL;
    size_t room = 0;
    ssize_t length;

    if (argc != 3) {
        fprintf(stderr, "usage: calls URL OPTIONS\n");
        return 2;
    }
    if (tell(dh_client_connect((const uint8_t *)argv[1], strlen(argv[1]), (const uint8_t *)argv[2], strlen(argv[2]),
                               &client, &answer), &answer) != 0)
        return 1;
    while ((length = getline(&line, &room, stdin)) > 0) {
        const char *tab = memchr(line, '\t', (size_t)length);
        const char *args;
        if (!tab) {
            fprintf(stderr, "a line without a tab\n");
            break;
        }
        args = tab + 1;
        if (line[length - 1] == '\n')
            length--;
        tell(dh_client_call(client, (const uint8_t *)line, (size_t)(tab - line), (const uint8_t *)args,
                            (size_t)(line + length - args), &answer), &answer);
    }
    free(line);
    if (dh_client_close(client, NULL) != 0)
        return 1;
    dh_client_free(client);
    return 0;
}
