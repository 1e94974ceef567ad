import { lookup } from "node:dns/promises";
import { openFilesReserve } from "../../base/open-files/reserve.ts";
import { requireUncompressed, uncompressed } from "../../base/uncompressed.ts";
import { VIA_HEADER, type Via, viaText } from "../../base/via.ts";
import { isAddress } from "../../config/address-range.ts";
import { CONNECTOR_REQUESTS, CONNECTOR_STREAMS } from "../../limits/request-plan.ts";
import { ConnectorError } from "../source.ts";
import { type AddressRules, createAddressRules } from "./addresses.ts";
import { codeOf } from "./errors.ts";
import { holdUntilRead } from "./held.ts";
import type { OwnAddress } from "./own-address.ts";
import { Slots } from "./slots.ts";
import { checkUrl, forbidden, plainHost } from "./url.ts";

/**
 * `fetch` for connectors' requests. It rejects with ConnectorError for requests that it refuses, with the signal's
 * reason if that aborts, and otherwise with the errors of `fetch`. Those may contain the URL with its query, so they
 * MUST go through `asConnectorError` before anyone sees them. The response's `url` differs from the requested one.
 *
 * Uses method, headers, body, signal, `lasts` and `via` of `init`. The signal is the only time limit. If too many
 * requests are in flight, it rejects at once with ConnectorError `unavailable`, and nothing was sent. A request stays
 * in flight until its body was read to the end, failed or was cancelled, or the signal aborted; the caller MUST
 * ensure one of these.
 */
export type OutboundFetch = (url: string | URL, init?: OutboundInit) => Promise<Response>;

export interface OutboundInit extends RequestInit {
  /**
   * Whether the answer is a stream, which stays open for as long as its server likes. Streams have their own limit.
   */
  readonly lasts?: boolean;
  /** The Gatehouse instances that the call passed before it reached this one. */
  readonly via?: Via;
}

/** Resolves a name to IPv4 or IPv6 addresses as text. Rejects as `node:dns` does. */
export type Resolve = (host: string) => Promise<readonly string[]>;

export interface OutboundOptions {
  /** Addresses and CIDR ranges that may be reached although they are link-local or metadata addresses. */
  readonly allow: readonly string[];
  readonly resolve?: Resolve;
  /** This Gatehouse's id, which every request carries. */
  readonly instance: string;
  /** The address that this Gatehouse listens on: nothing is sent to it. */
  readonly own: OwnAddress;
  /** PEM certificates of the authorities that servers are verified with. Default: the runtime's own. */
  readonly authorities?: string;
}

export interface Outbound {
  /** `fetch` for a workspace's connectors. One workspace can never use all requests or streams. */
  readonly fetchFor: (workspaceId: number) => OutboundFetch;
  /** Checks a URL as far as possible without a request. @throws ConnectorError `forbidden_address` */
  checkUrl(text: string | URL): URL;
  /** The numbers of requests and streams in flight. */
  readonly out: { readonly requests: number; readonly streams: number };
  /** Closes idle connections. */
  close(): void;
}

const MOST_REQUESTS = CONNECTOR_REQUESTS;
const MOST_STREAMS = CONNECTOR_STREAMS;
/**
 * Maximum number of in-flight requests from one workspace to one server. If that server hangs, the same number
 * remains for the others.
 */
const MOST_TO_ONE = 48;

const MAX_REDIRECTS = 3;
/** Maximum number of addresses of one name that are tried. All of its addresses are checked. */
const MAX_ATTEMPTS = 4;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** No connection was made, so nothing can have been done: another address of the name may be tried. */
const NOT_CONNECTED: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ConnectionRefused",
  "FailedToOpenSocket",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "EAFNOSUPPORT",
]);

/**
 * Makes requests that reach only checked addresses. The name is resolved for each request, all of its addresses are
 * checked, and the connection uses one of them as a number, so that the name cannot change to another address in
 * between (DNS rebinding). The certificate is still checked against the name, which is sent in SNI and `Host`.
 * Redirects are followed only within the origin. Proxies of the environment (`HTTPS_PROXY`) are not used: they would
 * resolve the name again.
 */
export function createOutbound(options: OutboundOptions): Outbound {
  const rules = createAddressRules(options.allow);
  const resolve = options.resolve ?? systemResolve;
  // A separate pool: connections opened by other code were not checked.
  const session = new Bun.FetchSession();
  const requests = new Slots(MOST_REQUESTS, MOST_TO_ONE);
  const streams = new Slots(MOST_STREAMS, MOST_STREAMS);

  /** Sends one request to the first address that accepts the connection. */
  async function send(url: URL, request: OutboundRequest): Promise<Response> {
    await openFilesReserve.untilRoom(request.signal);
    const addresses = await addressesOf(url, rules, resolve, request.signal);
    if (addresses.some((address) => options.own.is(address, url))) throw leadsHere();
    const [first = "", ...others] = addresses;
    // A stream can be sent only once.
    const fallbacks = request.body instanceof ReadableStream ? [] : others.slice(0, MAX_ATTEMPTS - 1);
    let address = first;
    for (;;) {
      try {
        return await askAt(url, address, request);
      } catch (error) {
        const next = NOT_CONNECTED.has(codeOf(error) ?? "") ? fallbacks.shift() : undefined;
        if (next === undefined) throw error;
        address = next;
      }
    }
  }

  async function askAt(url: URL, address: string, request: OutboundRequest): Promise<Response> {
    const host = plainHost(url);
    const pinned = new URL(url);
    pinned.hostname = address.includes(":") ? `[${address}]` : address;
    // URL ignores a host that it cannot parse. Then the name would be resolved again.
    if (!isAddress(plainHost(pinned))) throw new Error("the address cannot be written into the URL");
    const { headers, decompress } = uncompressed(request.headers);
    headers.set("host", url.host);
    headers.set(VIA_HEADER, viaText([...request.via, options.instance]));
    // Connection names headers that a proxy removes (RFC 9110, section 7.6.1). VIA_HEADER must get through.
    headers.delete("connection");
    const response = await session.fetch(pinned.href, {
      method: request.method,
      headers,
      decompress,
      redirect: "manual",
      proxy: false,
      timeout: false,
      ...(request.body == null ? {} : { body: request.body }),
      ...(request.signal ? { signal: request.signal } : {}),
      tls: {
        // Explicit: otherwise NODE_TLS_REJECT_UNAUTHORIZED=0 would turn it off.
        rejectUnauthorized: true,
        ...(isAddress(host) ? {} : { serverName: host }),
        ...(options.authorities === undefined ? {} : { ca: options.authorities }),
      },
    });
    return requireUncompressed(response);
  }

  /** Follows redirects up to the limit. */
  async function ask(from: URL, request: OutboundRequest): Promise<Response> {
    let url = from;
    for (let redirects = 0; ; redirects++) {
      request.signal?.throwIfAborted();
      const response = await send(url, request);
      const location = REDIRECTS.has(response.status) ? response.headers.get("location") : null;
      if (location === null) return response;
      // Nobody reads the body of a redirect, so it does not matter if it is cut off.
      response.body?.cancel().catch(() => {});
      url = redirected(url, location, request, response.status, redirects);
    }
  }

  return {
    checkUrl(text) {
      const url = checkUrl(text, rules);
      const host = plainHost(url);
      if (options.own.is(host === "localhost" ? "127.0.0.1" : host, url)) throw leadsHere();
      return url;
    },
    close: () => session.close(),
    get out() {
      return { requests: requests.taken, streams: streams.taken };
    },
    fetchFor: (workspaceId) => (text, init) => outboundFetch(workspaceId, text, init),
  };

  async function outboundFetch(
    workspaceId: number,
    text: string | URL,
    init: OutboundInit = {},
  ): Promise<Response> {
    const request: OutboundRequest = {
      method: (init.method ?? "GET").toUpperCase(),
      headers: new Headers(init.headers),
      body: init.body,
      signal: init.signal,
      via: init.via ?? [],
    };
    const url = checkUrl(text, rules);
    request.signal?.throwIfAborted();
    // Counted by workspace, so that workspaces that use the same server do not block each other.
    const owner = workspaceId === null ? url.origin : `${workspaceId} ${url.origin}`;
    const release = (init.lasts ? streams : requests).take(owner, workspaceId);
    if (typeof release === "string") throw full(release, init.lasts === true, url);
    try {
      return holdUntilRead(await ask(url, request), release, request.signal);
    } catch (error) {
      release();
      throw error;
    }
  }
}

function full(limit: "all" | "own" | "group", lasts: boolean, { origin }: URL): ConnectorError {
  const kind = lasts ? "streams" : "requests";
  const words =
    limit === "group"
      ? `the workspace's connectors already have their share of ${kind} in flight`
      : lasts
        ? `connectors already have ${MOST_STREAMS} streams open`
        : limit === "own"
          ? `${MOST_TO_ONE} requests to ${origin} are already in flight`
          : `connectors already have ${MOST_REQUESTS} requests in flight`;
  return new ConnectorError("unavailable", `Nothing was sent: ${words}. Try again later.`);
}

interface OutboundRequest {
  readonly method: string;
  readonly headers: Headers;
  readonly body: RequestInit["body"];
  readonly signal: RequestInit["signal"];
  readonly via: Via;
}

function leadsHere(): ConnectorError {
  return new ConnectorError("forbidden_address", "The URL leads to this Gatehouse itself.");
}

const systemResolve: Resolve = async (host) => {
  const found = await lookup(host, { all: true });
  return found.map(({ address }) => address);
};

/** @throws ConnectorError `forbidden_address` if any address is refused; as `resolve` does */
async function addressesOf(
  url: URL,
  rules: AddressRules,
  resolve: Resolve,
  signal: RequestInit["signal"],
): Promise<readonly string[]> {
  const host = plainHost(url);
  if (isAddress(host)) return [host];
  const found = await unlessAborted(resolve(url.hostname), signal);
  if (found.length === 0) throw new ConnectorError("unreachable", `The name ${host} has no address.`);
  if (found.some((address) => rules.refuses(address))) {
    throw new ConnectorError("forbidden_address", `The URL ${forbidden(host)}.`);
  }
  return found;
}

/** A resolver cannot be cancelled; a late result is ignored. */
function unlessAborted<Value>(promise: Promise<Value>, signal: RequestInit["signal"]): Promise<Value> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason);
    // A signal that has already aborted sends no event.
    if (signal.aborted) giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", giveUp));
  });
}

/**
 * The target of a redirect. Errors never contain its path or query, which may hold secrets. @throws ConnectorError
 */
function redirected(
  from: URL,
  location: string,
  request: OutboundRequest,
  status: number,
  redirects: number,
): URL {
  const refused = (words: string) => new ConnectorError("refused", `The server at ${from.origin} ${words}.`);
  const to = URL.parse(location, from.href);
  if (!to) throw refused("redirects to an invalid URL");
  if (to.origin !== from.origin) {
    throw refused(`redirects to another host, ${to.origin}, which is not followed`);
  }
  const again = status === 307 || status === 308;
  if (request.method !== "GET" && request.method !== "HEAD" && !again) {
    throw refused(`redirects a ${request.method} with status ${status}, which would make it a GET`);
  }
  if (request.body instanceof ReadableStream) throw refused("redirects a body that was sent as a stream");
  if (redirects >= MAX_REDIRECTS) throw refused(`redirects more than ${MAX_REDIRECTS} times`);
  // The fragment is never sent, but a user name and password would be.
  to.username = "";
  to.password = "";
  return to;
}
