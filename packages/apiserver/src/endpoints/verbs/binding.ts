/** POST `pods/<name>/binding` (and the legacy `bindings` collection): puts a pod on a node. */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { badRequest } from '@coracle/apimachinery/meta/status';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { BINDING, bodyKind } from '../../kinds/builtin/body-kinds.ts';
import { boundPod, validateBinding } from '../../registry/binding.ts';
import { guaranteedUpdate } from '../../registry/guaranteed-update.ts';
import { matchName, matchNamespace } from '../../registry/object-metadata.ts';
import { NO_ADMISSION } from '../../registry/write-call.ts';
import { type BodyOptions, decodeObjectBody } from '../body.ts';
import type { Exchange } from '../exchange.ts';
import { parseWriteOptions } from '../query.ts';
import { documentResponse, successStatus } from '../responses.ts';
import { writeCall } from '../write-request.ts';

export async function bindingVerb(exchange: Exchange): Promise<ApiResponse> {
  const { server } = exchange;
  const options = parseWriteOptions(exchange.query, 'CreateOptions');
  const binding = await namedBody(exchange, { ...options, info: bodyKind(BINDING)! });
  const name = binding.metadata.name!;
  const pods = server.resources.lookup('', 'v1', 'pods')!;
  // Admission is asked by the path of the request: the legacy collection is a resource of its own, with no subresource.
  const { admission } = writeCall(exchange, options);
  const call = { ...writeCall(exchange, options, 'binding'), info: pods, name };
  const subject = { name, object: binding, oldObject: undefined };
  await admission.mutate('CREATE', subject);
  checkNamed(exchange, binding);
  const node = validateBinding(binding, name);
  await admission.validate('CREATE', subject);
  await guaranteedUpdate(server.registry, {
    ...call,
    admission: NO_ADMISSION,
    pinned: false,
    patch: true,
    next: (pod) => boundPod(pods, pod, { binding, node, now: server.clock.now() }),
  });
  return documentResponse(exchange, { status: 201, object: successStatus(201) });
}

/** The body of a POST to `<name>/<subresource>` as an object of its kind, named like the URL. Rejects with ApiError 400. */
export async function namedBody(
  exchange: Exchange,
  { info, older, fieldValidation }: Omit<BodyOptions, 'dropStatus'>,
): Promise<UnstructuredObject> {
  const object = await decodeObjectBody(exchange, { info, older, fieldValidation, dropStatus: false });
  const { name } = exchange.info;
  matchNamespace(object.metadata, exchange.namespace);
  checkNamed(exchange, object);
  matchName(object.metadata, name || (object.metadata.name ?? ''));
  return object;
}

/** Throws ApiError 400 when the body of a subresource is about another object than the URL, or has become so. */
export function checkNamed({ info }: Exchange, { kind, metadata }: UnstructuredObject): void {
  if (info.name === '' || metadata.name === info.name) return;
  throw badRequest(`name in URL does not match name in ${kind} object`);
}
