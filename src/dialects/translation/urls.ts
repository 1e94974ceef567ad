import type { TranslationTarget } from "./translation.ts";
import { unsupported } from "./unsupported.ts";

type SupportedUrls = TranslationTarget["supportedUrls"];

/** Where files of an account at Google have their addresses. All workspaces share the account. */
const ACCOUNT_FILES = /(?:^|\.)googleapis\.com\.?$/i;
/** Others, such as `s3:`, are read with the rights of the account as well. */
const OF_THE_WEB = /^https?:$/;

/**
 * The address of a file, if the provider fetches it by itself. Gatehouse downloads nothing for a client: a server in its
 * network would be asked.
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
  throw unsupported(path, "is an address that this model's provider does not fetch: send the file as data.");
}

/** The addresses that a client may use, of those that a provider's library names. */
export function clientUrls(supported: SupportedUrls): SupportedUrls {
  // Those of all media types are files of the provider's account, and videos.
  return Object.fromEntries(Object.entries(supported).filter(([type]) => type !== "*" && type !== "*/*"));
}

function matches(type: string, mediaType: string): boolean {
  if (type === mediaType) return true;
  return type.endsWith("/*") && mediaType.startsWith(type.slice(0, -1));
}

/** Media types by the end of an address, for clients that do not name one. */
const BY_EXTENSION: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  webp: "image/webp",
  gif: "image/gif",
};

/** The media type of an image at an address; `image/*` if it does not show. */
export function imageTypeOf(address: string): string {
  const extension = /\.([a-z]+)$/i.exec(URL.parse(address)?.pathname ?? "")?.[1]?.toLowerCase();
  return BY_EXTENSION[extension ?? ""] ?? "image/*";
}

const DATA_URL = /^data:([a-z]+\/[a-z0-9.+-]+)(?:;[a-z0-9=."-]+)*;base64,/i;

/** The media type and the base64 of a `data:` URL; null if it is none. */
export function dataOfUrl(address: string): { readonly mediaType: string; readonly data: string } | null {
  const head = DATA_URL.exec(address);
  const mediaType = head?.[1];
  if (!head || mediaType === undefined) return null;
  return { mediaType: mediaType.toLowerCase(), data: address.slice(head[0].length) };
}
