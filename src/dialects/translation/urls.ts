import type { TranslationTarget } from "./translation.ts";
import { unsupported } from "./unsupported.ts";

type SupportedUrls = TranslationTarget["supportedUrls"];

/** The host of addresses of files in a Google account. All workspaces share the account. */
const ACCOUNT_FILES = /(?:^|\.)googleapis\.com\.?$/i;
/** Other addresses, such as `s3:`, are also read with the account's rights. */
const OF_THE_WEB = /^https?:$/;

/**
 * The address of a file, if the provider fetches it itself. Gatehouse downloads nothing for a client: the address
 * might be a server in Gatehouse's own network.
 * @param path where the address is in the request
 * @throws Problem 400 `unsupported_parameter`
 */
export function fileUrl(
  { supportedUrls }: Pick<TranslationTarget, "supportedUrls">,
  address: string,
  mediaType: string,
  path: string,
): { type: "url"; url: URL } {
  const isFetched = Object.entries(supportedUrls).some(
    ([type, patterns]) => matches(type, mediaType) && patterns.some((pattern) => pattern.test(address)),
  );
  const url = URL.parse(address);
  const isOpen = url && OF_THE_WEB.test(url.protocol) && !ACCOUNT_FILES.test(url.hostname);
  if (isFetched && isOpen) return { type: "url", url };
  throw unsupported(path, "is an address that this model's provider does not fetch. Send the file as data.");
}

/** The addresses that a client may use, among those that a provider's library supports. */
export function clientUrls(supported: SupportedUrls): SupportedUrls {
  // Patterns for all media types are for files of the provider's account, and for videos.
  return Object.fromEntries(Object.entries(supported).filter(([type]) => type !== "*" && type !== "*/*"));
}

function matches(type: string, mediaType: string): boolean {
  if (type === mediaType) return true;
  return type.endsWith("/*") && mediaType.startsWith(type.slice(0, -1));
}

/** Media types by file extension, for clients that do not name one. */
const BY_EXTENSION: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  webp: "image/webp",
  gif: "image/gif",
};

/** The media type of an image at an address; `image/*` if the address does not show it. */
export function imageTypeOf(address: string): string {
  const extension = /\.([a-z]+)$/i.exec(URL.parse(address)?.pathname ?? "")?.[1]?.toLowerCase();
  return BY_EXTENSION[extension ?? ""] ?? "image/*";
}

const DATA_URL = /^data:([a-z]+\/[a-z0-9.+-]+)(?:;[a-z0-9=."-]+)*;base64,/i;

/** The media type and the base64 of a `data:` URL; null if it is not one. */
export function dataOfUrl(address: string): { readonly mediaType: string; readonly data: string } | null {
  const head = DATA_URL.exec(address);
  const mediaType = head?.[1];
  if (!head || mediaType === undefined) return null;
  return { mediaType: mediaType.toLowerCase(), data: address.slice(head[0].length) };
}
