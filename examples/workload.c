#include "workload.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Each hot function keeps its own name in the profile. */
#define HOT __attribute__((noinline))

enum {
    TEXT_BYTES = 160 * 1024,
    PIECE_BYTES = 1200,
    RECORDS = 60000,
    ORDERS = 120000,
    MONTHS = 10,
    CUSTOMERS = 6000,
    TABLE_SLOTS = 16384, /* a power of two, more than twice the customers */
    MATRIX = 128,
    MATRIX_ROUNDS = 3,
    MESSAGE_WORDS = 8,
    HASH_PASSES = 12,
    CHECKSUM_ROUNDS = 24,
};

struct order {
    uint32_t customer;
    uint32_t cents;
};

struct workload {
    uint64_t random;
    unsigned char text[TEXT_BYTES];
    unsigned char packed[2 * TEXT_BYTES];
    z_stream stream;
    unsigned int distances[PIECE_BYTES + 1];
    uint64_t records[RECORDS];
    uint64_t sorted[RECORDS];
    struct order orders[ORDERS];
    uint32_t customers[CUSTOMERS];
    uint32_t table[TABLE_SLOTS];
    uint64_t spent[CUSTOMERS];
    double left[MATRIX][MATRIX];
    double right[MATRIX][MATRIX];
    double product[MATRIX][MATRIX];
};

/* xorshift64: the data are the same on every machine. */
static uint64_t next_random(struct workload *workload)
{
    workload->random ^= workload->random << 13;
    workload->random ^= workload->random >> 7;
    workload->random ^= workload->random << 17;
    return workload->random;
}

static uint64_t mix(uint64_t digest, uint64_t value)
{
    return (digest ^ value) * UINT64_C(0x9e3779b97f4a7c15);
}

/* --- edit distance: what it takes to turn one stretch of text into another --- */

static unsigned int least(unsigned int a, unsigned int b, unsigned int c)
{
    unsigned int ab = a < b ? a : b;

    return ab < c ? ab : c;
}

static HOT unsigned int edit_distance(const unsigned char *from, const unsigned char *to,
                                      unsigned int *distances)
{
    for (unsigned int column = 0; column <= PIECE_BYTES; column++)
        distances[column] = column;
    for (unsigned int row = 0; row < PIECE_BYTES; row++) {
        unsigned int diagonal = distances[0];

        distances[0] = row + 1;
        for (unsigned int column = 0; column < PIECE_BYTES; column++) {
            unsigned int above = distances[column + 1];

            distances[column + 1] =
                least(above + 1, distances[column] + 1, diagonal + (from[row] != to[column]));
            diagonal = above;
        }
    }
    return distances[PIECE_BYTES];
}

static uint64_t compare_texts(struct workload *workload)
{
    uint64_t digest = 0;

    for (int i = 0; i < 3; i++)
        digest = mix(digest, edit_distance(workload->text, workload->text + (i + 1) * PIECE_BYTES,
                                           workload->distances));
    return digest;
}

/* --- heap sort --- */

static void sift_down(uint64_t *heap, size_t root, size_t count)
{
    uint64_t value = heap[root];

    for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && heap[child + 1] > heap[child])
            child++;
        if (heap[child] <= value)
            break;
        heap[root] = heap[child];
        root = child;
    }
    heap[root] = value;
}

static HOT void heap_sort(uint64_t values[RECORDS])
{
    for (size_t root = RECORDS / 2; root-- > 0;)
        sift_down(values, root, RECORDS);
    for (size_t last = RECORDS; last-- > 1;) {
        uint64_t greatest = values[0];

        values[0] = values[last];
        values[last] = greatest;
        sift_down(values, 0, last);
    }
}

static uint64_t sort_records(struct workload *workload)
{
    uint64_t digest = 0;

    memcpy(workload->sorted, workload->records, sizeof(workload->sorted));
    heap_sort(workload->sorted);
    for (size_t i = 0; i < RECORDS; i += 997)
        digest = mix(digest, workload->sorted[i]);
    return digest;
}

/* --- hash join: what each customer has spent --- */

static size_t slot_of(uint32_t customer)
{
    return (customer * UINT32_C(2654435769)) >> 18;
}

static HOT void build_table(struct workload *workload)
{
    memset(workload->table, 0, sizeof(workload->table));
    for (uint32_t i = 0; i < CUSTOMERS; i++) {
        size_t slot = slot_of(workload->customers[i]);

        while (workload->table[slot])
            slot = (slot + 1) % TABLE_SLOTS;
        workload->table[slot] = i + 1;
    }
}

static HOT void probe_table(struct workload *workload)
{
    for (size_t i = 0; i < ORDERS; i++) {
        const struct order *order = &workload->orders[i];
        size_t slot = slot_of(order->customer);

        while (workload->customers[workload->table[slot] - 1] != order->customer)
            slot = (slot + 1) % TABLE_SLOTS;
        workload->spent[workload->table[slot] - 1] += order->cents;
    }
}

static uint64_t join_orders(struct workload *workload)
{
    uint64_t digest = 0;

    memset(workload->spent, 0, sizeof(workload->spent));
    build_table(workload);
    for (int month = 0; month < MONTHS; month++)
        probe_table(workload);
    for (size_t i = 0; i < CUSTOMERS; i += 97)
        digest = mix(digest, workload->spent[i]);
    return digest;
}

/* --- matrix product --- */

static HOT void multiply_matrices(struct workload *workload)
{
    memset(workload->product, 0, sizeof(workload->product));
    for (int row = 0; row < MATRIX; row++)
        for (int inner = 0; inner < MATRIX; inner++)
            for (int column = 0; column < MATRIX; column++)
                workload->product[row][column] +=
                    workload->left[row][inner] * workload->right[inner][column];
}

static uint64_t multiply(struct workload *workload)
{
    uint64_t digest = 0;

    for (int i = 0; i < MATRIX_ROUNDS; i++)
        multiply_matrices(workload);
    for (int i = 0; i < MATRIX; i++)
        digest = mix(digest, (uint64_t)workload->product[i][i]);
    return digest;
}

/* --- SipHash-2-4 over the text, in 64-byte messages --- */

static uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static void sip_absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

static HOT uint64_t sip_hash(const unsigned char *message, uint64_t key0, uint64_t key1)
{
    uint64_t v[4] = {key0 ^ UINT64_C(0x736f6d6570736575), key1 ^ UINT64_C(0x646f72616e646f6d),
                     key0 ^ UINT64_C(0x6c7967656e657261), key1 ^ UINT64_C(0x7465646279746573)};

    for (size_t i = 0; i < MESSAGE_WORDS; i++) {
        uint64_t word;

        memcpy(&word, message + 8 * i, sizeof(word));
        sip_absorb(v, word);
    }
    sip_absorb(v, (uint64_t)MESSAGE_WORDS << 59);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t hash_messages(struct workload *workload)
{
    uint64_t digest = 0;

    for (int pass = 0; pass < HASH_PASSES; pass++)
        for (size_t i = 0; i < TEXT_BYTES; i += 8 * MESSAGE_WORDS)
            digest = sip_hash(workload->text + i, digest, (uint64_t)pass);
    return digest;
}

/* --- zlib: deflate and CRC-32 --- */

/* The stream is set up once: the profile is to show compression, not allocation. */
static uint64_t compress_text(struct workload *workload)
{
    z_stream *stream = &workload->stream;

    stream->next_in = workload->text;
    stream->avail_in = TEXT_BYTES;
    stream->next_out = workload->packed;
    stream->avail_out = sizeof(workload->packed);
    if (deflateReset(stream) != Z_OK || deflate(stream, Z_FINISH) != Z_STREAM_END)
        abort();
    return mix(stream->total_out, stream->adler);
}

static uint64_t checksum_text(struct workload *workload)
{
    uLong sum = crc32(0, Z_NULL, 0);

    for (int i = 0; i < CHECKSUM_ROUNDS; i++)
        sum = crc32(sum, workload->text, TEXT_BYTES);
    return sum;
}

const struct stage workload_stages[WORKLOAD_STAGES] = {
    {"edit distance", {"edit_distance"}, NULL, compare_texts},
    {"heap sort", {"heap_sort", "sift_down"}, NULL, sort_records},
    {"hash join", {"build_table", "probe_table"}, NULL, join_orders},
    {"matrix product", {"multiply_matrices"}, NULL, multiply},
    {"SipHash", {"sip_hash", "sip_absorb", "sip_round"}, NULL, hash_messages},
    {"zlib deflate", {NULL}, "libz.so", compress_text},
    {"zlib CRC-32", {"crc32", "crc32_z"}, NULL, checksum_text},
};

static void fill_text(struct workload *workload)
{
    static const char *const words[] = {"sample ", "period ", "ring ",  "record ",
                                        "bucket ", "offset ", "scale ", "thread "};

    for (size_t used = 0; used < TEXT_BYTES;) {
        const char *word = words[next_random(workload) % 8];
        size_t length = strlen(word);

        if (length > TEXT_BYTES - used)
            length = TEXT_BYTES - used;
        memcpy(workload->text + used, word, length);
        used += length;
        if (used < TEXT_BYTES && next_random(workload) % 4 == 0)
            workload->text[used++] = (unsigned char)('0' + next_random(workload) % 10);
    }
}

static void fill_numbers(struct workload *workload)
{
    for (size_t i = 0; i < RECORDS; i++)
        workload->records[i] = next_random(workload);
    for (uint32_t i = 0; i < CUSTOMERS; i++)
        workload->customers[i] = i * 7919 + 1;
    for (size_t i = 0; i < ORDERS; i++) {
        workload->orders[i].customer = workload->customers[next_random(workload) % CUSTOMERS];
        workload->orders[i].cents = (uint32_t)(next_random(workload) % 10000);
    }
    for (int row = 0; row < MATRIX; row++)
        for (int column = 0; column < MATRIX; column++) {
            workload->left[row][column] = (double)(next_random(workload) % 100);
            workload->right[row][column] = (double)(next_random(workload) % 100);
        }
}

struct workload *workload_new(uint64_t seed)
{
    struct workload *workload = calloc(1, sizeof(*workload));

    if (!workload)
        return NULL;
    if (deflateInit(&workload->stream, 6) != Z_OK) {
        free(workload);
        return NULL;
    }
    workload->random = mix(1, seed + 1);
    fill_text(workload);
    fill_numbers(workload);
    return workload;
}

void workload_free(struct workload *workload)
{
    deflateEnd(&workload->stream);
    free(workload);
}
