/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pods of devices, as the kubelet of this node tells them on its pod-resources socket. The socket speaks
 * gRPC, which is HTTP/2 with a prefix of five bytes before a message of protobuf. libcurl speaks HTTP/2, and
 * protobuf-c reads the message.
 */
#ifndef WATCH_PODS_PODS_H
#define WATCH_PODS_PODS_H
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

/* The socket: DCGM_POD_RESOURCES_KUBELET_SOCKET, as for dcgm-exporter, else the kubelet's usual one if it is
 * there. NULL: this node has none. */
const char *pods_socket(void);

/* Asks the kubelet for all devices of all pods, within three seconds. *pods: {ID: [POD, NAMESPACE,
 * CONTAINER], ..}; ID is that of a GPU or MIG instance as the device plugin names it. If containers share a
 * device, each text has one part for each of them, with commas between. Owner: caller. UNAVAILABLE: no
 * connection, no permission, or the kubelet refuses; BAD_INPUT: the answer is none. */
enum status pods_ask(json_t **pods, const char *socket, struct error *err);

/* Reads an answer: prefix and message. */
enum status pods_read(json_t **pods, const void *answer, size_t size, struct error *err);

/* Adds the devices of a ListPodResourcesResponse to *pods. UNAVAILABLE: the program was built without
 * protobuf-c. */
enum status pods_message_read(json_t *pods, const uint8_t *message, size_t size, struct error *err);
#endif
