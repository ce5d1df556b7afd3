/**
 * A request for a web server of a guest: `/podProxy/{ns}/{pod}/{scheme}/{port}`, the path in a header. It goes to where
 * QEMU listens for that port on the guest's own loopback address, and nowhere else: no address is taken from the request.
 */
import { ApiError, badRequest } from '@coracle/apimachinery/meta/status';
import { endToEnd } from '@coracle/runtime/http/hop-by-hop';
import { createHttpsTransport } from '@coracle/runtime/http/https-transport';
import { type ApiRequest, type ApiResponse, redirected } from '@coracle/runtime/http/seam';
import { portNumber } from './guest-line.ts';
import type { ForwardTarget } from './pod-port-forward.ts';

/** Path and query that the guest is asked, as sent; and the mark of an answer that is the guest's own. */
export const PROXY_PATH_HEADER = 'coracle-proxy-path';
export const PROXIED_HEADER = 'coracle-proxied';

/** The guest's answer. Throws ApiError: 400 for what is no target, 503 when the guest does not answer. */
export async function proxyToGuest(
  request: ApiRequest,
  target: { readonly scheme: string; readonly port: string; readonly endpoint: ForwardTarget['endpoint'] },
): Promise<ApiResponse> {
  const { scheme } = target;
  const port = portNumber(target.port);
  if (port === undefined || (scheme !== 'http' && scheme !== 'https')) {
    throw badRequest(`${JSON.stringify(`${scheme}:${target.port}`)} is not an address that requests may be sent to`);
  }
  const path = request.headers[PROXY_PATH_HEADER] ?? '';
  if (!path.startsWith('/')) throw badRequest(`the header ${PROXY_PATH_HEADER} has to be a path`);
  try {
    const { host, port: reached } = await target.endpoint(port);
    // The guest's own key is nobody's business: whom the bytes reach is settled by the address.
    const ask = createHttpsTransport({
      server: `${scheme}://${host}:${reached}`,
      plain: true,
      http1: true,
      keepAlive: false,
      insecureSkipTlsVerify: true,
    });
    const answer = await ask(redirected(request, { path, headers: headersFor(request) }));
    return { ...answer, headers: { ...endToEnd(answer.headers), [PROXIED_HEADER]: 'true' } };
  } catch (error) {
    if (request.signal.aborted) throw error;
    let cause = error as Error;
    while (cause.cause instanceof Error) cause = cause.cause;
    const message = `error trying to reach service: ${cause.message}`;
    throw new ApiError({ code: 503, reason: 'ServiceUnavailable', message });
  }
}

/** As the client sent them, the name it knows the server by among them. */
function headersFor({ headers }: ApiRequest): Record<string, string> {
  const { [PROXY_PATH_HEADER]: _path, host: _host, ...rest } = endToEnd(headers);
  const kept = Object.fromEntries(Object.entries(rest).filter(([name]) => !name.startsWith(':')));
  const host = headers['x-forwarded-host'];
  return host === undefined ? kept : { ...kept, host };
}
