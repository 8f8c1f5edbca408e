#ifndef CDISCOVERY_H
#define CDISCOVERY_H

#include <stddef.h>
#include <stdint.h>

/// Sockets of multicast DNS, which need control messages that Swift cannot write, and avahi-client, which is loaded, not linked, so that
/// programs run without it.

/// Opens a socket for port 5353, shared with other programs of this host. Returns -1 and sets errno if that is not possible.
int lv_multicast_open(int is_ipv6);

/// Joins the group on an interface, or leaves it. Returns 0, or -1 with errno.
int lv_multicast_join(int descriptor, int is_ipv6, uint32_t interface, int joins);

/// Sends to the group (`address` is NULL) or to a host, out of an interface. Returns -1 with errno if that fails.
int lv_multicast_send(
    int descriptor, int is_ipv6, uint32_t interface, const uint8_t *address, uint16_t port, const uint8_t *bytes, size_t size);

/// Receives a datagram: its size, or -1 with errno. `address` has room for 16 bytes.
ptrdiff_t lv_multicast_receive(
    int descriptor, int is_ipv6, uint8_t *bytes, size_t size, uint8_t *address, uint16_t *port, uint32_t *interface);

/// An address of an interface.
struct lv_address {
    uint32_t interface;
    char name[64];
    uint8_t bytes[16];
    /// 4 or 16.
    uint8_t size;
    uint8_t prefix_length;
    /// Whether the interface is up, can send multicasts, and is neither the loopback nor a point-to-point link.
    uint8_t is_usable;
};

/// Lists the addresses of this host, up to a number. Returns how many there are, or -1.
int lv_addresses(struct lv_address *list, int capacity);

/// A connection to the Avahi daemon. All calls return at once or after a call to the daemon; callbacks come from a thread of the client, and must
/// not call any of these functions.
struct lv_avahi;

/// The daemon runs (2), is not there yet (101), or was lost (100): then close this client and open another.
typedef void (*lv_avahi_state)(void *context, int state);

/// Whether avahi-client is installed.
int lv_avahi_is_installed(void);

/// Connects to the daemon. Returns NULL, and the error's text, if it does not run.
struct lv_avahi *lv_avahi_open(lv_avahi_state callback, void *context, const char **error);

/// Ends everything that was begun with the client.
void lv_avahi_close(struct lv_avahi *);

/// Copies the host's name with its domain into a buffer.
void lv_avahi_host(struct lv_avahi *, char *buffer, size_t size);

/// `event`: 0 a service appeared, 1 it disappeared. `protocol`: 0 IPv4, 1 IPv6.
typedef void (*lv_avahi_browsed)(void *context, int32_t interface, int protocol, int event, const char *name);

/// Begins to browse. Returns NULL if that is not possible.
void *lv_avahi_browse(struct lv_avahi *, const char *type, lv_avahi_browsed callback, void *context);
void lv_avahi_end_browse(struct lv_avahi *, void *browser);

/// `event`: 0 the record is there, 1 it is not any longer.
typedef void (*lv_avahi_text)(void *context, int event, const uint8_t *bytes, size_t size);

/// Begins to watch the TXT record of a service.
void *lv_avahi_watch(struct lv_avahi *, const char *name, const char *type, lv_avahi_text callback, void *context);
void lv_avahi_end_watch(struct lv_avahi *, void *watch);

typedef void (*lv_avahi_resolved)(
    void *context, int32_t interface, int protocol, const char *host, const uint8_t *address, size_t address_size, uint16_t port,
    const uint8_t *text, size_t text_size);

/// Begins to resolve a service to addresses of a family (0 IPv4, 1 IPv6).
void *lv_avahi_resolve(
    struct lv_avahi *, const char *name, const char *type, int family, lv_avahi_resolved callback, void *context);
void lv_avahi_end_resolve(struct lv_avahi *, void *resolver);

/// Why the last call that returned a null pointer failed.
int lv_avahi_last_error(struct lv_avahi *);

/// `state`: 2 published, 3 another service has the name, 4 failed.
typedef void (*lv_avahi_published)(void *context, int state);

/// Creates a group, to which one service is added.
void *lv_avahi_group(struct lv_avahi *, lv_avahi_published callback, void *context);
void lv_avahi_end_group(struct lv_avahi *, void *group);

/// Publishes a service, `interface` -1 for all. Returns 0, or an error for lv_avahi_error; -8 says that a service of this host has the name.
int lv_avahi_publish(
    struct lv_avahi *, void *group, int32_t interface, const char *name, const char *type, const char *const *subtypes, uint16_t port,
    const uint8_t *text, size_t text_size);

/// Changes the TXT record.
int lv_avahi_update(
    struct lv_avahi *, void *group, int32_t interface, const char *name, const char *type, const uint8_t *text, size_t text_size);

/// The text of an error.
const char *lv_avahi_error(int error);

#endif
