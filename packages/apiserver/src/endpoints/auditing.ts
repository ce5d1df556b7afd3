/** The audit record of one exchange: begun when the user is known, ended with the answer, however long that takes. */
import type { ApiResponse, ByteStream } from '@coracle/runtime/http/seam';
import type { RecordEnd } from '../audit/record.ts';
import { parseBody } from './body.ts';
import type { Exchange } from './exchange.ts';

/** Begins the record; does nothing where nobody audits. */
export function beginAudit(exchange: Exchange, authenticated: boolean): void {
  const { auditor } = exchange.server;
  if (!auditor) return;
  exchange.audit = auditor.begin({
    auditId: exchange.auditId,
    request: exchange.request,
    user: authenticated ? exchange.authenticated : undefined,
    receivedAt: exchange.receivedAt,
    info: exchange.info,
    readBody: () => readBody(exchange),
  });
}

function readBody(exchange: Exchange): unknown {
  if (exchange.request.body.length === 0) return undefined;
  try {
    return parseBody(exchange, exchange.resource).value;
  } catch {
    // A patch of another type is still JSON; what is not is not shown.
    return parsed([exchange.request.body]);
  }
}

/** Writes what became of the request; wraps bodies that go on, so that their end is written as well. */
export function endAudit(
  exchange: Exchange,
  { response, panicked }: { readonly response: ApiResponse; readonly panicked: boolean },
): ApiResponse {
  const { audit } = exchange;
  if (!audit) return response;
  const { body, upgrade, status } = response;
  const end: RecordEnd = {
    code: status,
    responseBody: typeof body === 'function' || !(audit.wantsResponse || status >= 400) ? undefined : jsonOf(response),
    impersonatedUser: exchange.user !== exchange.authenticated ? exchange.user : undefined,
    annotations: exchange.annotations,
    annotationDetails: exchange.annotationDetails,
  };
  if (exchange.authenticated === undefined) audit.write('ResponseStarted', end);
  else if (panicked) audit.write('Panic', end);
  else if (typeof body === 'function') {
    audit.write('ResponseStarted', end);
    return { ...response, body: endingStream(body, () => audit.write('ResponseComplete', end)) };
  } else if (upgrade) {
    audit.write('ResponseStarted', end);
    const accept: typeof upgrade.accept = (socket) => {
      socket.onClose(() => audit.write('ResponseComplete', end));
      upgrade.accept(socket);
    };
    return { ...response, upgrade: { ...upgrade, accept } };
  } else audit.write('ResponseComplete', end);
  return response;
}

/** A stream that says once when it has ended, by itself or because the far end went. */
function endingStream(stream: ByteStream, ended: () => void): ByteStream {
  return (sink) => {
    let reported = false;
    const report = (): void => {
      if (reported) return;
      reported = true;
      ended();
    };
    sink.signal.addEventListener('abort', report, { once: true });
    stream({
      write: (chunk) => sink.write(chunk),
      get buffered() {
        return sink.buffered;
      },
      drained: () => sink.drained(),
      end() {
        sink.end();
        report();
      },
      ...(sink.fail && {
        fail() {
          sink.fail?.();
          report();
        },
      }),
      signal: sink.signal,
    });
  };
}

function jsonOf({ headers, body }: ApiResponse): unknown {
  if (body === undefined || typeof body === 'function') return undefined;
  if (!headers['content-type']?.startsWith('application/json')) return undefined;
  return parsed(body instanceof Uint8Array ? [body] : body);
}

function parsed(chunks: readonly Uint8Array[]): unknown {
  const decoder = new TextDecoder();
  try {
    return JSON.parse(chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join('') + decoder.decode());
  } catch {
    return undefined;
  }
}
