/** POST `pods/<name>/binding` (and the legacy `bindings` collection): puts a pod on a node. */

import type { UnstructuredObject } from '../../../api/meta/object.ts';
import { isJsonObject } from '../../../api/meta/own-property.ts';
import { badRequest } from '../../../api/meta/status.ts';
import type { ApiResponse } from '../../../base/http/seam.ts';
import { boundPod, validateBinding } from '../../registry/binding.ts';
import { guaranteedUpdate } from '../../registry/guaranteed-update.ts';
import { matchName, matchNamespace } from '../../registry/object-metadata.ts';
import { NO_ADMISSION } from '../../registry/write-call.ts';
import { parseBody } from '../body.ts';
import type { Exchange } from '../exchange.ts';
import { parseWriteOptions } from '../query.ts';
import { documentResponse, successStatus } from '../responses.ts';
import { writeCall } from '../write-request.ts';

export async function bindingVerb(exchange: Exchange): Promise<ApiResponse> {
  const { server } = exchange;
  const options = parseWriteOptions(exchange.query, 'CreateOptions');
  const binding = namedBody(exchange, 'Binding');
  const name = binding.metadata.name!;
  const node = validateBinding(binding, name);
  const pods = server.resources.lookup('', 'v1', 'pods')!;
  const call = { ...writeCall(exchange, options, 'binding'), info: pods, name };
  const subject = { name, object: binding, oldObject: undefined };
  await call.admission.mutate('CREATE', subject);
  await call.admission.validate('CREATE', subject);
  await guaranteedUpdate(server.registry, {
    ...call,
    admission: NO_ADMISSION,
    pinned: false,
    patch: true,
    next: (pod) => boundPod(pods, pod, { binding, node, now: server.clock.now() }),
  });
  return documentResponse(exchange, { status: 201, object: successStatus(201) });
}

/** The body of a POST to `<name>/<subresource>` as an object of `kind` named like the URL. Throws ApiError 400. */
export function namedBody(exchange: Exchange, kind: string): UnstructuredObject {
  const value = parseBody(exchange, undefined).value;
  if (!isJsonObject(value)) throw badRequest(`a ${kind} must be a JSON object`);
  const object = value as UnstructuredObject;
  if (object.kind !== undefined && object.kind !== kind) {
    throw badRequest(`${object.kind} in version "${object.apiVersion}" cannot be handled as a ${kind}`);
  }
  if (!isJsonObject(object.metadata)) object.metadata = {};
  const { name } = exchange.info;
  if (name !== '' && object.metadata.name !== name)
    throw badRequest(`name in URL does not match name in ${kind} object`);
  matchNamespace(object.metadata, exchange.namespace);
  matchName(object.metadata, name || (object.metadata.name ?? ''));
  return object;
}
