/** Headers of one connection, not of the request or answer (RFC 9110, 7.6.1): whoever passes one on makes its own. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The headers that go on to the next connection: without those above, and without those that `Connection` names. */
export function endToEnd(headers: Readonly<Record<string, string>>): Record<string, string> {
  const named = (headers['connection'] ?? '').split(',').map((name) => name.trim().toLowerCase());
  const kept = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name) && !named.includes(name));
  return Object.fromEntries(kept);
}
