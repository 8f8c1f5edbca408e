#include "CDiscovery.h"

#if defined(__linux__)

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// The types and functions of avahi-client 0.8 that are used here, so that its headers need not be installed.

struct string_list;
struct avahi_address {
    int protocol;
    uint8_t bytes[16];
};

enum {
    ANY = -1,
    EVENT_NEW = 0,
    EVENT_REMOVE = 1,
    CLASS_IN = 1,
    TYPE_TXT = 16,
    ERROR_NO_LIBRARY = -1,
    MAXIMUM_NAME = 1024,
};

typedef void client_callback(void *client, int state, void *context);
typedef void browser_callback(
    void *browser, int interface, int protocol, int event, const char *name, const char *type, const char *domain, int flags,
    void *context);
typedef void record_callback(
    void *browser, int interface, int protocol, int event, const char *name, uint16_t class, uint16_t type, const void *data,
    size_t size, int flags, void *context);
typedef void resolver_callback(
    void *resolver, int interface, int protocol, int event, const char *name, const char *type, const char *domain,
    const char *host, const struct avahi_address *address, uint16_t port, struct string_list *text, int flags, void *context);
typedef void group_callback(void *group, int state, void *context);

static struct {
    void *(*threaded_poll_new)(void);
    const void *(*threaded_poll_get)(void *);
    int (*threaded_poll_start)(void *);
    int (*threaded_poll_stop)(void *);
    void (*threaded_poll_free)(void *);
    void (*threaded_poll_lock)(void *);
    void (*threaded_poll_unlock)(void *);
    void *(*client_new)(const void *, int, client_callback *, void *, int *);
    void (*client_free)(void *);
    const char *(*client_get_host_name_fqdn)(void *);
    int (*client_errno)(void *);
    void *(*service_browser_new)(void *, int, int, const char *, const char *, int, browser_callback *, void *);
    int (*service_browser_free)(void *);
    void *(*record_browser_new)(void *, int, int, const char *, uint16_t, uint16_t, int, record_callback *, void *);
    int (*record_browser_free)(void *);
    void *(*service_resolver_new)(
        void *, int, int, const char *, const char *, const char *, int, int, resolver_callback *, void *);
    int (*service_resolver_free)(void *);
    void *(*entry_group_new)(void *, group_callback *, void *);
    int (*entry_group_free)(void *);
    int (*entry_group_reset)(void *);
    int (*entry_group_commit)(void *);
    int (*entry_group_add_service_strlst)(
        void *, int, int, int, const char *, const char *, const char *, const char *, uint16_t, struct string_list *);
    int (*entry_group_add_service_subtype)(
        void *, int, int, int, const char *, const char *, const char *, const char *);
    int (*entry_group_update_service_txt_strlst)(
        void *, int, int, int, const char *, const char *, const char *, struct string_list *);
    int (*string_list_parse)(const void *, size_t, struct string_list **);
    struct string_list *(*string_list_get_next)(struct string_list *);
    uint8_t *(*string_list_get_text)(struct string_list *);
    size_t (*string_list_get_size)(struct string_list *);
    void (*string_list_free)(struct string_list *);
    int (*service_name_join)(char *, size_t, const char *, const char *, const char *);
    const char *(*strerror)(int);
} avahi;

static int is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
    void *library = dlopen("libavahi-client.so.3", RTLD_NOW | RTLD_LOCAL);
    void *common = dlopen("libavahi-common.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!library || !common) return;
    int found = 1;
#define FIND(name)                                                                                                             \
    do {                                                                                                                       \
        void *symbol = dlsym(library, "avahi_" #name);                                                                         \
        if (!symbol) symbol = dlsym(common, "avahi_" #name);                                                                   \
        memcpy(&avahi.name, &symbol, sizeof symbol);                                                                           \
        found = found && symbol;                                                                                               \
    } while (0)
    FIND(threaded_poll_new);
    FIND(threaded_poll_get);
    FIND(threaded_poll_start);
    FIND(threaded_poll_stop);
    FIND(threaded_poll_free);
    FIND(threaded_poll_lock);
    FIND(threaded_poll_unlock);
    FIND(client_new);
    FIND(client_free);
    FIND(client_get_host_name_fqdn);
    FIND(client_errno);
    FIND(service_browser_new);
    FIND(service_browser_free);
    FIND(record_browser_new);
    FIND(record_browser_free);
    FIND(service_resolver_new);
    FIND(service_resolver_free);
    FIND(entry_group_new);
    FIND(entry_group_free);
    FIND(entry_group_reset);
    FIND(entry_group_commit);
    FIND(entry_group_add_service_strlst);
    FIND(entry_group_add_service_subtype);
    FIND(entry_group_update_service_txt_strlst);
    FIND(string_list_parse);
    FIND(string_list_get_next);
    FIND(string_list_get_text);
    FIND(string_list_get_size);
    FIND(string_list_free);
    FIND(service_name_join);
    FIND(strerror);
#undef FIND
    is_loaded = found;
}

int lv_avahi_is_installed(void) {
    pthread_once(&once, load);
    return is_loaded;
}

/// What a callback of Avahi's gets.
struct target {
    void *object;
    void *context;
    union {
        lv_avahi_browsed browsed;
        lv_avahi_text text;
        lv_avahi_resolved resolved;
        lv_avahi_published published;
    } callback;
};

struct lv_avahi {
    void *poll;
    void *client;
    lv_avahi_state callback;
    void *context;
};

static void changed(void *client, int state, void *context) {
    struct lv_avahi *self = context;
    (void)client;
    self->callback(self->context, state);
}

struct lv_avahi *lv_avahi_open(lv_avahi_state callback, void *context, const char **error) {
    *error = "avahi-client is not installed";
    if (!lv_avahi_is_installed()) return NULL;
    struct lv_avahi *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->callback = callback;
    self->context = context;
    self->poll = avahi.threaded_poll_new();
    int code = ERROR_NO_LIBRARY;
    if (self->poll) self->client = avahi.client_new(avahi.threaded_poll_get(self->poll), 0, changed, self, &code);
    if (!self->client || avahi.threaded_poll_start(self->poll)) {
        *error = avahi.strerror(code);
        if (self->client) avahi.client_free(self->client);
        if (self->poll) avahi.threaded_poll_free(self->poll);
        free(self);
        return NULL;
    }
    return self;
}

void lv_avahi_close(struct lv_avahi *self) {
    avahi.threaded_poll_stop(self->poll);
    avahi.client_free(self->client);
    avahi.threaded_poll_free(self->poll);
    free(self);
}

void lv_avahi_host(struct lv_avahi *self, char *buffer, size_t size) {
    avahi.threaded_poll_lock(self->poll);
    const char *name = avahi.client_get_host_name_fqdn(self->client);
    strncpy(buffer, name ? name : "", size - 1);
    buffer[size - 1] = 0;
    avahi.threaded_poll_unlock(self->poll);
}

static struct target *make_target(void *context) {
    struct target *target = calloc(1, sizeof *target);
    if (target) target->context = context;
    return target;
}

/// Keeps the object of a target, or frees the target without one.
static void *keep(struct lv_avahi *self, struct target *target, void *object) {
    target->object = object;
    avahi.threaded_poll_unlock(self->poll);
    if (object) return target;
    free(target);
    return NULL;
}

static void end(struct lv_avahi *self, struct target *target, int (*release)(void *)) {
    if (!target) return;
    avahi.threaded_poll_lock(self->poll);
    release(target->object);
    avahi.threaded_poll_unlock(self->poll);
    free(target);
}

static void browsed(
    void *browser, int interface, int protocol, int event, const char *name, const char *type, const char *domain, int flags,
    void *context) {
    struct target *target = context;
    (void)browser, (void)type, (void)domain, (void)flags;
    if (name && (event == EVENT_NEW || event == EVENT_REMOVE)) {
        target->callback.browsed(target->context, interface, protocol, event, name);
    }
}

void *lv_avahi_browse(struct lv_avahi *self, const char *type, lv_avahi_browsed callback, void *context) {
    struct target *target = make_target(context);
    if (!target) return NULL;
    target->callback.browsed = callback;
    avahi.threaded_poll_lock(self->poll);
    return keep(
        self, target, avahi.service_browser_new(self->client, ANY, ANY, type, "local", 0, browsed, target));
}

void lv_avahi_end_browse(struct lv_avahi *self, void *browser) { end(self, browser, avahi.service_browser_free); }

static void watched(
    void *browser, int interface, int protocol, int event, const char *name, uint16_t class, uint16_t type, const void *data,
    size_t size, int flags, void *context) {
    struct target *target = context;
    (void)browser, (void)interface, (void)protocol, (void)name, (void)class, (void)type, (void)flags;
    if (data && (event == EVENT_NEW || event == EVENT_REMOVE)) {
        target->callback.text(target->context, event, data, size);
    }
}

void *lv_avahi_watch(struct lv_avahi *self, const char *name, const char *type, lv_avahi_text callback, void *context) {
    char full[MAXIMUM_NAME];
    if (avahi.service_name_join(full, sizeof full, name, type, "local") < 0) return NULL;
    struct target *target = make_target(context);
    if (!target) return NULL;
    target->callback.text = callback;
    avahi.threaded_poll_lock(self->poll);
    return keep(
        self, target, avahi.record_browser_new(self->client, ANY, ANY, full, CLASS_IN, TYPE_TXT, 0, watched, target));
}

void lv_avahi_end_watch(struct lv_avahi *self, void *watch) { end(self, watch, avahi.record_browser_free); }

static void resolved(
    void *resolver, int interface, int protocol, int event, const char *name, const char *type, const char *domain,
    const char *host, const struct avahi_address *address, uint16_t port, struct string_list *text, int flags, void *context) {
    struct target *target = context;
    (void)resolver, (void)name, (void)type, (void)domain, (void)flags;
    if (event != 0 || !host || !address) return;
    uint8_t bytes[4096];
    size_t size = 0;
    for (; text; text = avahi.string_list_get_next(text)) {
        size_t length = avahi.string_list_get_size(text);
        if (length > 255 || size + 1 + length > sizeof bytes) break;
        bytes[size] = (uint8_t)length;
        memcpy(bytes + size + 1, avahi.string_list_get_text(text), length);
        size += 1 + length;
    }
    target->callback.resolved(
        target->context, interface, protocol, host, address->bytes, address->protocol == 1 ? 16 : 4, port, bytes, size);
}

void *lv_avahi_resolve(
    struct lv_avahi *self, const char *name, const char *type, int family, lv_avahi_resolved callback, void *context) {
    struct target *target = make_target(context);
    if (!target) return NULL;
    target->callback.resolved = callback;
    avahi.threaded_poll_lock(self->poll);
    return keep(
        self, target,
        avahi.service_resolver_new(self->client, ANY, ANY, name, type, "local", family, 0, resolved, target));
}

void lv_avahi_end_resolve(struct lv_avahi *self, void *resolver) { end(self, resolver, avahi.service_resolver_free); }

static void published(void *group, int state, void *context) {
    struct target *target = context;
    (void)group;
    target->callback.published(target->context, state);
}

int lv_avahi_last_error(struct lv_avahi *self) {
    avahi.threaded_poll_lock(self->poll);
    int code = avahi.client_errno(self->client);
    avahi.threaded_poll_unlock(self->poll);
    return code;
}

void *lv_avahi_group(struct lv_avahi *self, lv_avahi_published callback, void *context) {
    struct target *target = make_target(context);
    if (!target) return NULL;
    target->callback.published = callback;
    avahi.threaded_poll_lock(self->poll);
    return keep(self, target, avahi.entry_group_new(self->client, published, target));
}

void lv_avahi_end_group(struct lv_avahi *self, void *group) { end(self, group, avahi.entry_group_free); }

int lv_avahi_publish(
    struct lv_avahi *self, void *group, int32_t interface, const char *name, const char *type, const char *const *subtypes,
    uint16_t port, const uint8_t *text, size_t text_size) {
    struct string_list *list = NULL;
    int code = avahi.string_list_parse(text, text_size, &list);
    if (code < 0) return code;
    void *object = ((struct target *)group)->object;
    avahi.threaded_poll_lock(self->poll);
    avahi.entry_group_reset(object);
    code = avahi.entry_group_add_service_strlst(object, interface, ANY, 0, name, type, "local", NULL, port, list);
    for (; code >= 0 && *subtypes; subtypes++) {
        code = avahi.entry_group_add_service_subtype(object, interface, ANY, 0, name, type, "local", *subtypes);
    }
    if (code >= 0) code = avahi.entry_group_commit(object);
    avahi.threaded_poll_unlock(self->poll);
    avahi.string_list_free(list);
    return code;
}

int lv_avahi_update(
    struct lv_avahi *self, void *group, int32_t interface, const char *name, const char *type, const uint8_t *text,
    size_t text_size) {
    struct string_list *list = NULL;
    int code = avahi.string_list_parse(text, text_size, &list);
    if (code < 0) return code;
    avahi.threaded_poll_lock(self->poll);
    code = avahi.entry_group_update_service_txt_strlst(
        ((struct target *)group)->object, interface, ANY, 0, name, type, "local", list);
    avahi.threaded_poll_unlock(self->poll);
    avahi.string_list_free(list);
    return code;
}

const char *lv_avahi_error(int error) { return avahi.strerror ? avahi.strerror(error) : "avahi-client is not installed"; }

#endif
