import { dlopen, FFIType, ptr } from "bun:ffi";
import ipaddr from "ipaddr.js";
import { listOpenFiles } from "../../base/open-files/count.ts";

/** A client's connection, as the operating system reports it. */
export interface InboundSocket {
  readonly descriptor: number;
  /** The client's address, in the canonical form of `addressKey`. */
  readonly address: string;
  readonly port: number;
}

/**
 * The connections from clients to this process. `Bun.serve` shows only those with a request, so this asks the
 * operating system about each descriptor.
 */
export interface InboundSockets {
  /** The connections accepted on a local port. Takes about 7 µs per descriptor of the process. */
  list(localPort: number): InboundSocket[];
  /** Ends a connection in both directions. The server then closes it as if the client had left. */
  end(socket: InboundSocket): void;
}

const LIBRARIES = { linux: "libc.so.6", darwin: "libSystem.B.dylib" } as const;
const SYMBOLS = {
  getsockname: { args: [FFIType.i32, FFIType.ptr, FFIType.ptr], returns: FFIType.i32 },
  getpeername: { args: [FFIType.i32, FFIType.ptr, FFIType.ptr], returns: FFIType.i32 },
  shutdown: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 },
} as const;
const SHUT_RDWR = 2;
/** Size in bytes of a `sockaddr_storage`. */
const ADDRESS_BYTES = 128;
const AF_INET = 2;
const AF_INET6 = process.platform === "darwin" ? 30 : 10;

/** Null if this operating system is not supported. */
export function openInboundSockets(): InboundSockets | null {
  const { platform } = process;
  if (platform !== "linux" && platform !== "darwin") return null;
  let system: ReturnType<typeof dlopen<typeof SYMBOLS>>["symbols"];
  try {
    system = dlopen(LIBRARIES[platform], SYMBOLS).symbols;
  } catch {
    return null;
  }
  const address = Buffer.alloc(ADDRESS_BYTES);
  const length = new Uint32Array(1);

  function endpoint(
    ask: typeof system.getsockname,
    descriptor: number,
  ): Omit<InboundSocket, "descriptor"> | null {
    length[0] = ADDRESS_BYTES;
    if (ask(descriptor, ptr(address), ptr(length)) !== 0) return null;
    return readSocketAddress(address);
  }

  return {
    list(localPort) {
      const sockets: InboundSocket[] = [];
      for (const descriptor of listOpenFiles()) {
        if (endpoint(system.getsockname, descriptor)?.port !== localPort) continue;
        const peer = endpoint(system.getpeername, descriptor);
        // The listener itself has no peer.
        if (peer) sockets.push({ descriptor, ...peer });
      }
      return sockets;
    },
    end: ({ descriptor }) => void system.shutdown(descriptor, SHUT_RDWR),
  };
}

/** A `sockaddr_in` or `sockaddr_in6`; null for any other family. macOS has a length byte before the family. */
function readSocketAddress(bytes: Buffer): Omit<InboundSocket, "descriptor"> | null {
  const family = process.platform === "darwin" ? bytes[1] : bytes.readUInt16LE(0);
  const port = bytes.readUInt16BE(2);
  if (family === AF_INET) return { address: addressOf(bytes.subarray(4, 8)), port };
  if (family === AF_INET6) return { address: addressOf(bytes.subarray(8, 24)), port };
  return null;
}

function addressOf(bytes: Uint8Array): string {
  return addressKey(ipaddr.fromByteArray([...bytes]).toString());
}

/** One canonical form per address: an IPv4 client of an IPv6 listener has two forms. */
export function addressKey(address: string): string {
  return ipaddr.process(address).toString();
}
