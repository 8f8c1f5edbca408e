#define _GNU_SOURCE
#if defined(__APPLE__)
#define __APPLE_USE_RFC_3542
#endif

#include "CDiscovery.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MULTICAST_PORT = 5353 };

static const uint8_t group_ipv4[4] = {224, 0, 0, 251};
static const uint8_t group_ipv6[16] = {0xFF, 0x02, [15] = 0xFB};

static int set(int descriptor, int level, int option, int value) {
    return setsockopt(descriptor, level, option, &value, sizeof value);
}

int lv_multicast_open(int is_ipv6) {
    int descriptor = socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
    if (descriptor < 0) return -1;
    int failed = fcntl(descriptor, F_SETFD, FD_CLOEXEC) || fcntl(descriptor, F_SETFL, O_NONBLOCK)
        || set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
#ifdef SO_REUSEPORT
    failed = failed || set(descriptor, SOL_SOCKET, SO_REUSEPORT, 1);
#endif
    if (is_ipv6) {
        failed = failed || set(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 1)
            || set(descriptor, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 255)
            || set(descriptor, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 255)
            || set(descriptor, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1)
            || set(descriptor, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
        struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(MULTICAST_PORT)};
        failed = failed || bind(descriptor, (struct sockaddr *)&address, sizeof address);
    } else {
        failed = failed || set(descriptor, IPPROTO_IP, IP_MULTICAST_TTL, 255) || set(descriptor, IPPROTO_IP, IP_TTL, 255)
            || set(descriptor, IPPROTO_IP, IP_MULTICAST_LOOP, 1) || set(descriptor, IPPROTO_IP, IP_PKTINFO, 1);
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(MULTICAST_PORT)};
        failed = failed || bind(descriptor, (struct sockaddr *)&address, sizeof address);
    }
    if (failed) {
        int error = errno;
        close(descriptor);
        errno = error;
        return -1;
    }
    return descriptor;
}

int lv_multicast_join(int descriptor, int is_ipv6, uint32_t interface, int joins) {
    if (is_ipv6) {
        struct ipv6_mreq request = {.ipv6mr_interface = interface};
        memcpy(&request.ipv6mr_multiaddr, group_ipv6, sizeof group_ipv6);
        return setsockopt(
            descriptor, IPPROTO_IPV6, joins ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &request, sizeof request);
    }
    struct ip_mreqn request = {.imr_ifindex = (int)interface};
    memcpy(&request.imr_multiaddr, group_ipv4, sizeof group_ipv4);
    return setsockopt(
        descriptor, IPPROTO_IP, joins ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &request, sizeof request);
}

int lv_multicast_send(
    int descriptor, int is_ipv6, uint32_t interface, const uint8_t *address, uint16_t port, const uint8_t *bytes, size_t size) {
    union {
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
    } target;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
    } control;
    memset(&target, 0, sizeof target);
    memset(&control, 0, sizeof control);
    struct iovec vector = {.iov_base = (void *)bytes, .iov_len = size};
    struct msghdr message = {
        .msg_name = &target, .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control};
    if (is_ipv6) {
        target.ipv6.sin6_family = AF_INET6;
        target.ipv6.sin6_port = htons(port);
        target.ipv6.sin6_scope_id = interface;
        memcpy(&target.ipv6.sin6_addr, address ? address : group_ipv6, 16);
        message.msg_namelen = sizeof target.ipv6;
        message.msg_controllen = CMSG_SPACE(sizeof(struct in6_pktinfo));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = IPPROTO_IPV6;
        header->cmsg_type = IPV6_PKTINFO;
        header->cmsg_len = CMSG_LEN(sizeof(struct in6_pktinfo));
        struct in6_pktinfo info = {.ipi6_ifindex = interface};
        memcpy(CMSG_DATA(header), &info, sizeof info);
    } else {
        target.ipv4.sin_family = AF_INET;
        target.ipv4.sin_port = htons(port);
        memcpy(&target.ipv4.sin_addr, address ? address : group_ipv4, 4);
        message.msg_namelen = sizeof target.ipv4;
        message.msg_controllen = CMSG_SPACE(sizeof(struct in_pktinfo));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = IPPROTO_IP;
        header->cmsg_type = IP_PKTINFO;
        header->cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo));
        struct in_pktinfo info;
        memset(&info, 0, sizeof info);
        info.ipi_ifindex = (int)interface;
        memcpy(CMSG_DATA(header), &info, sizeof info);
    }
    return sendmsg(descriptor, &message, 0) < 0 ? -1 : 0;
}

ptrdiff_t lv_multicast_receive(
    int descriptor, int is_ipv6, uint8_t *bytes, size_t size, uint8_t *address, uint16_t *port, uint32_t *interface) {
    union {
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
    } source;
    union {
        struct cmsghdr header;
        char room[256];
    } control;
    struct iovec vector = {.iov_base = bytes, .iov_len = size};
    struct msghdr message = {
        .msg_name = &source,
        .msg_namelen = sizeof source,
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control};
    ssize_t count = recvmsg(descriptor, &message, 0);
    if (count < 0) return -1;
    *interface = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(header), sizeof info);
            *interface = (uint32_t)info.ipi_ifindex;
        } else if (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(header), sizeof info);
            *interface = (uint32_t)info.ipi6_ifindex;
        }
    }
    if (is_ipv6) {
        memcpy(address, &source.ipv6.sin6_addr, 16);
        *port = ntohs(source.ipv6.sin6_port);
    } else {
        memcpy(address, &source.ipv4.sin_addr, 4);
        *port = ntohs(source.ipv4.sin_port);
    }
    return count;
}

static int prefix_length(const uint8_t *mask, int size) {
    int length = 0;
    for (int index = 0; index < size; index++) {
        for (int bit = 7; bit >= 0; bit--) {
            if (!(mask[index] >> bit & 1)) return length;
            length++;
        }
    }
    return length;
}

int lv_addresses(struct lv_address *list, int capacity) {
    struct ifaddrs *first;
    if (getifaddrs(&first)) return -1;
    int count = 0;
    for (struct ifaddrs *entry = first; entry; entry = entry->ifa_next) {
        if (!entry->ifa_addr || !entry->ifa_netmask) continue;
        int family = entry->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        if (count++ >= capacity) continue;
        struct lv_address *address = &list[count - 1];
        memset(address, 0, sizeof *address);
        address->interface = if_nametoindex(entry->ifa_name);
        strncpy(address->name, entry->ifa_name, sizeof address->name - 1);
        const unsigned wanted = IFF_UP | IFF_RUNNING | IFF_MULTICAST;
        address->is_usable =
            (entry->ifa_flags & wanted) == wanted && !(entry->ifa_flags & (IFF_LOOPBACK | IFF_POINTOPOINT));
        if (family == AF_INET) {
            address->size = 4;
            memcpy(address->bytes, &((struct sockaddr_in *)entry->ifa_addr)->sin_addr, 4);
            address->prefix_length = (uint8_t)prefix_length(
                (const uint8_t *)&((struct sockaddr_in *)entry->ifa_netmask)->sin_addr, 4);
        } else {
            address->size = 16;
            memcpy(address->bytes, &((struct sockaddr_in6 *)entry->ifa_addr)->sin6_addr, 16);
            address->prefix_length = (uint8_t)prefix_length(
                (const uint8_t *)&((struct sockaddr_in6 *)entry->ifa_netmask)->sin6_addr, 16);
        }
    }
    freeifaddrs(first);
    return count < capacity ? count : capacity;
}
