/** WATCH: from the query to the plan of a stream. Only malformed requests are answered with an HTTP error. */
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { validateListOptions } from '../../registry/list-options.ts';
import { parseResourceVersion } from '../../registry/resource-version.ts';
import { createSelection } from '../../registry/selection.ts';
import type { Exchange } from '../exchange.ts';
import { parseListOptions } from '../query.ts';
import { representationOf, WATCH_HEADERS } from '../responses.ts';
import { socketResponse } from '../stream-socket.ts';
import { parseIncludeObject } from '../table.ts';
import { createFrameEncoder } from '../watch-frames.ts';
import { watchStream } from '../watch-stream.ts';

/** Watches without a timeout of their own end somewhere in this range, so that they do not all come back at once. */
const MIN_TIMEOUT_SECONDS = 1800;
/** setTimeout's limit is 2^31 ms; nobody needs a watch of more than a day. */
const MAX_TIMEOUT_SECONDS = 86_400;

export function watchVerb(exchange: Exchange): ApiResponse {
  const { resource: info, server, query } = exchange;
  // Asked twice, as upstream does: what could not even be listed is refused before the options are looked at.
  representationOf(exchange);
  const options = parseListOptions(query);
  validateListOptions(options, { watch: true });
  const from = parseResourceVersion(options.resourceVersion);
  // A legacy watch (the path says `watch`) may name its object in the path.
  const named = exchange.info.name !== '' && options.fieldSelector === '';
  const fieldSelector = named ? `metadata.name=${exchange.info.name}` : options.fieldSelector;
  const selection = createSelection(info, { labelSelector: options.labelSelector, fieldSelector });
  // A WatchList, which client-go asks for in place of a list, is no Table (watchListEndpointRestrictions).
  const tables = !(options.sendInitialEvents === true && options.allowWatchBookmarks);
  if (!tables) representationOf(exchange, { tables });
  const representation = representationOf(exchange, { stream: true, tables });
  const frames = createFrameEncoder(server.frames, {
    info,
    representation,
    includeObject: parseIncludeObject(query.get('includeObject')),
    now: () => server.clock.now(),
    writeElsewhere: server.writeElsewhere,
  });
  const seconds =
    options.timeoutSeconds !== 0
      ? Math.min(options.timeoutSeconds, MAX_TIMEOUT_SECONDS)
      : MIN_TIMEOUT_SECONDS * (1 + Math.random());
  const stream = watchStream(server, {
    info,
    namespace: exchange.namespace,
    name: exchange.info.name,
    selection,
    from,
    // Without a version a watch begins with what is there.
    initialState: options.sendInitialEvents ?? from === 0,
    bookmarks: options.allowWatchBookmarks,
    timeoutMs: seconds * 1000,
    frames,
  });
  const { encoding } = representation;
  if (exchange.request.upgradable) return socketResponse(exchange.request, { stream, encoding, clock: server.clock });
  return { status: 200, headers: WATCH_HEADERS[encoding], body: stream };
}
