/* A driver without a GPU, for library.rs and work.rs: two devices, memory from malloc, one kernel.
 *
 * Work put on a stream is only noted down and done when somebody waits, so that a host which
 * looks at its memory too early, or frees memory too early, is found out. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100,
    INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_PTX = 218, UNSUPPORTED_PTX = 222,
    INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, PEER_ACCESS_ALREADY_ENABLED = 704,
    CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901,
};
enum { JIT_ERROR_LOG_BUFFER = 5, JIT_ERROR_LOG_BUFFER_SIZE = 6 };
enum { MAX_SHARED = 227 * 1024, MEMORY = 1 << 30 };

static int initialised, shared_limit = 48 * 1024;
static void *current;

/* What the tests ask for: objects alive, and frees of memory that noted work still uses. */
static int alive, faults;
int fake_alive(void) { return alive; }
int fake_faults(void) { return faults; }

struct work { enum { COPY, FILL, ADD_ONE, MULTIPLY } kind; char *to; const char *from; size_t size; int value; };
static struct work noted[1024];

/* y = M x by the fake cuBLAS below. */
static struct product { int rows, columns, leading; const float *x; } product;
static void multiply(float *y, const float *m) {
    for (int row = 0; row < product.rows; row++) {
        y[row] = 0;
        for (int i = 0; i < product.columns; i++) y[row] += m[i * product.leading + row] * product.x[i];
    }
}
static int count;

/* A recording, by one thread. As on a real driver (580, H100) it makes every wait fail and is then
 * of no use; what its stream is given is not done, and no replay does it here. */
static void *recording;
static int spoilt;
int fake_recording(void) { return recording != NULL; }
static int refused(void) {
    if (recording) spoilt = 1;
    return recording ? CAPTURE_UNSUPPORTED : SUCCESS;
}

static int note(void *stream, struct work work) {
    if (!current) return INVALID_CONTEXT;
    if (stream && stream == recording) return SUCCESS;
    if (count == 1024) return OUT_OF_MEMORY;
    noted[count++] = work;
    return SUCCESS;
}

static int do_noted(void) {
    if (refused()) return CAPTURE_UNSUPPORTED;
    for (int i = 0; i < count; i++) {
        struct work w = noted[i];
        if (w.kind == COPY) memcpy(w.to, w.from, w.size);
        if (w.kind == FILL) memset(w.to, w.value, w.size);
        if (w.kind == ADD_ONE) for (size_t j = 0; j < w.size; j++) ((uint32_t *)w.to)[j]++;
        if (w.kind == MULTIPLY) multiply((float *)w.to, (const float *)w.from);
    }
    count = 0;
    return current ? SUCCESS : INVALID_CONTEXT;
}

static int new_memory(void **memory, size_t size) {
    if (!current) return INVALID_CONTEXT;
    if (size == 0) return INVALID_VALUE;
    if (size > MEMORY || posix_memalign(memory, 4096, size)) return OUT_OF_MEMORY;
    memset(*memory, 0xAB, size);
    alive++;
    return SUCCESS;
}

static int free_memory(void *memory) {
    faults += count > 0;
    alive--;
    free(memory);
    return SUCCESS;
}

static int setting(const char *name) {
    const char *value = getenv(name);
    return value ? atoi(value) : 0;
}

int cuInit(unsigned flags) {
    (void)flags;
    initialised = 1;
    return setting("FAKE_INIT");
}
/* FAKE_VERSION: CUDA version of the driver, 11040 for 11.4. */
int cuDriverGetVersion(int *version) {
    *version = setting("FAKE_VERSION") ? setting("FAKE_VERSION") : 13010;
    return SUCCESS;
}

int cuGetErrorName(int code, const char **name) {
    switch (code) {
    case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; return SUCCESS;
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return SUCCESS;
    case NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; return SUCCESS;
    case UNSUPPORTED_PTX: *name = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; return SUCCESS;
    case 226: *name = "CUDA_ERROR_CONTAINED"; return SUCCESS;
    }
    *name = NULL;
    return INVALID_VALUE;
}
int cuGetErrorString(int code, const char **text) {
    *text = code == 226 ? "Invalid access, contained" : "fake text";
    return SUCCESS;
}

static int device_count(void) { return setting("FAKE_ZERO") ? 0 : 2; }
int cuDeviceGetCount(int *n) {
    *n = device_count();
    return initialised ? SUCCESS : NOT_INITIALIZED;
}
int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return ordinal < device_count() ? SUCCESS : INVALID_DEVICE;
}
int cuDeviceGetName(char *name, int size, int device) {
    snprintf(name, (size_t)size, "Fake GPU %d", device);
    return SUCCESS;
}
/* As a driver before CUDA 11.4: without cuDeviceGetUuid_v2. */
int cuDeviceGetUuid(char *uuid, int device) { memset(uuid, 0xF0 + device, 16); return SUCCESS; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = MEMORY; return SUCCESS; }
int cuDeviceGetAttribute(int *value, int which, int device) {
    (void)device;
    switch (which) {
    case 1: *value = 1024; return SUCCESS;
    case 10: *value = 32; return SUCCESS;
    case 75: *value = setting("FAKE_CAPABILITY") ? setting("FAKE_CAPABILITY") / 10 : 9; return SUCCESS;
    case 76: *value = setting("FAKE_CAPABILITY") % 10; return SUCCESS;
    case 97: *value = MAX_SHARED; return SUCCESS;
    }
    *value = 1000 + which;
    return SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    int refusal = setting("FAKE_RETAIN");
    if (refusal) return refusal;
    *context = (void *)(intptr_t)(device + 1);
    alive++;
    return SUCCESS;
}
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; alive--; current = NULL; return SUCCESS; }
int cuCtxGetCurrent(void **context) { *context = current; return SUCCESS; }
int cuCtxSetCurrent(void *context) { current = context; return SUCCESS; }
int cuCtxSynchronize(void) { return do_noted(); }
int cuMemGetInfo_v2(size_t *free, size_t *total) { *free = 4096; *total = MEMORY; return SUCCESS; }

/* FAKE_PTX: newest version of PTX that the driver compiles, 78 for 7.8. */
static int is_newer(const char *image) {
    int major = 0, minor = 0, newest = setting("FAKE_PTX") ? setting("FAKE_PTX") : 98;
    const char *version = strstr(image, ".version ");
    return version && sscanf(version, ".version %d.%d", &major, &minor) == 2 && 10 * major + minor > newest;
}
int cuModuleLoadDataEx(void **module, const char *image, unsigned n, const int *options, void **values) {
    int code = !strstr(image, ".entry") ? INVALID_IMAGE
               : is_newer(image) ? UNSUPPORTED_PTX
               : strstr(image, "bogus") ? INVALID_PTX : SUCCESS;
    char *log = NULL;
    size_t size = 0;
    for (unsigned i = 0; i < n; i++) {
        if (options[i] == JIT_ERROR_LOG_BUFFER) log = values[i];
        if (options[i] == JIT_ERROR_LOG_BUFFER_SIZE) size = (size_t)values[i];
    }
    if (code == SUCCESS) {
        *module = module;
        alive++;
    } else if (log) {
        snprintf(log, size, "fake ptxas: fatal: cannot compile %zu bytes\n", strlen(image));
    }
    return code;
}
int cuModuleUnload(void *module) { (void)module; faults += count > 0; alive--; return SUCCESS; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = module;
    return strcmp(name, "add_one") ? NOT_FOUND : SUCCESS;
}
int cuFuncGetAttribute(int *value, int which, void *function) {
    (void)function;
    *value = which == 8 ? shared_limit : which == 0 ? 1024 : which == 3 ? 0 : 10 + which;
    return SUCCESS;
}
int cuFuncSetAttribute(void *function, int which, int value) {
    (void)function;
    if (which != 8 || value > MAX_SHARED) return INVALID_VALUE;
    shared_limit = value;
    return SUCCESS;
}
int cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *size) {
    (void)function;
    if (index > 1) return INVALID_VALUE;
    *offset = 8 * index;
    *size = index ? 4 : 8;
    return SUCCESS;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared) {
    (void)function, (void)shared;
    *blocks = 2048 / threads;
    return SUCCESS;
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **args, void **extra) {
    (void)function, (void)extra;
    if (gx * gy * gz == 0 || bx * by * bz == 0 || bx * by * bz > 1024 || shared > (unsigned)shared_limit)
        return INVALID_VALUE;
    return note(stream, (struct work){ADD_ONE, *(char **)args[0], NULL, *(uint32_t *)args[1], 0});
}

int cuStreamCreate(void **stream, unsigned flags) {
    if (!current) return INVALID_CONTEXT;
    if (flags != 1) return INVALID_VALUE; /* 1: non-blocking */
    *stream = malloc(1);
    alive++;
    return SUCCESS;
}
int cuStreamDestroy_v2(void *stream) { alive--; free(stream); return SUCCESS; }
int cuStreamSynchronize(void *stream) { (void)stream; return do_noted(); }
/* Done after some looks, if it ever is. */
int cuStreamQuery(void *stream) {
    static int looks;
    (void)stream;
    return count && (setting("FAKE_STUCK") || ++looks % 4) ? NOT_READY : do_noted();
}
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { (void)stream, (void)event, (void)flags; return SUCCESS; }

struct event { int timed, recorded, captured; };
int cuEventCreate(struct event **event, unsigned flags) {
    if (!current) return INVALID_CONTEXT;
    *event = malloc(sizeof **event);
    **event = (struct event){flags != 2, 0, 0};
    alive++;
    return SUCCESS;
}
int cuEventDestroy_v2(struct event *event) { alive--; free(event); return SUCCESS; }
int cuEventRecord(struct event *event, void *stream) {
    event->recorded = 1;
    event->captured = stream == recording;
    return SUCCESS;
}
int cuEventSynchronize(struct event *event) {
    if (event->captured && !recording) return INVALID_VALUE;
    return event->recorded ? do_noted() : refused();
}
int cuEventQuery(struct event *event) { return event->recorded && count ? NOT_READY : SUCCESS; }
int cuEventElapsedTime(float *ms, struct event *start, struct event *end) {
    if (!(start->timed && start->recorded && end->timed && end->recorded)) return INVALID_HANDLE;
    if (count) return NOT_READY;
    *ms = 0.25f;
    return SUCCESS;
}

int cuStreamBeginCapture_v2(void *stream, int mode) {
    if (recording || mode != 1) return INVALID_VALUE; /* 1: of this thread */
    recording = stream;
    spoilt = 0;
    return SUCCESS;
}
int cuStreamEndCapture(void *stream, void **graph) {
    if (stream != recording) return INVALID_VALUE;
    recording = NULL;
    *graph = spoilt ? NULL : malloc(1);
    alive += !spoilt;
    return spoilt ? CAPTURE_INVALIDATED : SUCCESS;
}
int cuGraphDestroy(void *graph) { alive--; free(graph); return SUCCESS; }
int cuGraphInstantiateWithFlags(void **made, void *graph, unsigned long long flags) {
    if (!graph || flags) return INVALID_VALUE;
    *made = malloc(1);
    alive++;
    return SUCCESS;
}
int cuGraphExecDestroy(void *made) { alive--; free(made); return SUCCESS; }

int cuMemAlloc_v2(void **pointer, size_t size) { return new_memory(pointer, size); }
int cuMemFree_v2(void *pointer) { return free_memory(pointer); }
int cuMemHostAlloc(void **pointer, size_t size, unsigned flags) { (void)flags; return new_memory(pointer, size); }
int cuMemFreeHost(void *pointer) { return free_memory(pointer); }
int cuMemHostGetDevicePointer_v2(void **pointer, void *host, unsigned flags) {
    if (flags) return INVALID_VALUE;
    *pointer = host;
    return SUCCESS;
}
int cuMemcpyHtoDAsync_v2(char *to, const char *from, size_t size, void *stream) {
    return note(stream, (struct work){COPY, to, from, size, 0});
}
int cuMemcpyDtoDAsync_v2(char *to, const char *from, size_t size, void *stream) {
    return note(stream, (struct work){COPY, to, from, size, 0});
}
int cuMemcpyDtoHAsync_v2(char *to, const char *from, size_t size, void *stream) {
    return note(stream, (struct work){COPY, to, from, size, 0});
}
/* Between the two devices there is a way in one direction; copies need none. */
int cuDeviceCanAccessPeer(int *can, int from, int to) { *can = from == 0 && to == 1; return SUCCESS; }
int cuDeviceGetP2PAttribute(int *value, int which, int from, int to) {
    if (from == to) return INVALID_DEVICE;
    *value = which == 1 ? from : from == 0; /* 1: rank */
    return SUCCESS;
}
static int way;
int cuCtxEnablePeerAccess(void *to, unsigned flags) {
    if (!current || current == to || flags) return INVALID_CONTEXT;
    return way++ ? PEER_ACCESS_ALREADY_ENABLED : SUCCESS;
}
int cuMemcpyPeerAsync(char *to, void *to_context, const char *from, void *from_context, size_t size, void *stream) {
    if (to_context != current || !from_context || from_context == to_context) return INVALID_CONTEXT;
    return note(stream, (struct work){COPY, to, from, size, 0});
}
int cuMemsetD8Async(char *to, unsigned char value, size_t size, void *stream) {
    return note(stream, (struct work){FILL, to, NULL, size, value});
}

/* What is used of NCCL: a communicator of one member, which sends to itself in the order of its calls. */
struct id { char bytes[128]; };
struct piece { char *place; size_t size; void *stream; };
static struct piece sent[8], received[8];
static int sends, receives, groups;
static const char id_text[] = "of the fake NCCL";
int ncclGetVersion(int *version) { *version = 22703; return 0; }
int ncclGetUniqueId(struct id *id) { memcpy(id->bytes, id_text, sizeof id_text); return 0; }
int ncclCommInitRank(void **comm, int ranks, struct id id, int rank) {
    if (!current || ranks != 1 || rank != 0 || strcmp(id.bytes, id_text)) return 4;
    *comm = &groups;
    return 0;
}
int ncclCommGetAsyncError(void *comm, int *error) { (void)comm; *error = setting("FAKE_NCCL"); return 0; }
int ncclGroupStart(void) { groups++; sends = receives = 0; return 0; }
static int piece(struct piece *pieces, int *used, struct piece new, int type, int peer) {
    if (!groups || type != 1 || peer != 0 || *used == 8) return 4;
    pieces[(*used)++] = new;
    return 0;
}
int ncclSend(const void *from, size_t size, int type, int peer, void *comm, void *stream) {
    (void)comm;
    return piece(sent, &sends, (struct piece){(char *)from, size, stream}, type, peer);
}
int ncclRecv(void *to, size_t size, int type, int peer, void *comm, void *stream) {
    (void)comm;
    return piece(received, &receives, (struct piece){to, size, stream}, type, peer);
}
int ncclGroupEnd(void) {
    groups--;
    if (sends != receives) return 5;
    for (int i = 0; i < sends; i++) {
        if (sent[i].size != received[i].size) return 5;
        if (note(sent[i].stream, (struct work){COPY, received[i].place, sent[i].place, sent[i].size, 0})) return 1;
    }
    return 0;
}
const char *ncclGetErrorString(int code) { return code == 5 ? "invalid usage" : "invalid argument"; }

/* What is used of cuBLAS; the workspace must come after the stream. */
static int stream_set, workspace_set;
int cublasCreate_v2(void **handle) {
    if (!current) return 1;
    *handle = &product;
    alive++;
    stream_set = workspace_set = 0;
    return 0;
}
int cublasDestroy_v2(void *handle) { (void)handle; faults += count > 0; alive--; return 0; }
int cublasSetStream_v2(void *handle, void *stream) {
    (void)handle, (void)stream;
    stream_set = 1;
    workspace_set = 0;
    return 0;
}
int cublasSetWorkspace_v2(void *handle, void *workspace, size_t size) {
    (void)handle, (void)size;
    workspace_set = workspace && stream_set;
    return 0;
}
int cublasSgemv_v2(void *handle, int transposed, int m, int n, const float *alpha, const float *matrix, int leading,
                   const float *x, int x_step, const float *beta, float *y, int y_step) {
    (void)handle;
    if (!workspace_set || transposed || *alpha != 1 || *beta != 0 || x_step != 1 || y_step != 1) return 7;
    product = (struct product){m, n, leading, x};
    return note(NULL, (struct work){MULTIPLY, (char *)y, (const char *)matrix, 0, 0}) ? 13 : 0;
}
