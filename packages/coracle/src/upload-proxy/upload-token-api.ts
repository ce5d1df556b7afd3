/** `upload.cdi.kubevirt.io/v1beta1`: an UploadTokenRequest that is created is answered with a token, and nothing is stored. */
import { badRequest, methodNotAllowed, notFound } from '@coracle/apimachinery/meta/status';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import type { AggregatedApi } from '@coracle/apiserver/endpoints/aggregated-api';
import { authorizationAttributes } from '@coracle/apiserver/endpoints/authorization';
import { UPLOAD_GROUP } from '@coracle/kubevirt/rules/data-volume/cdi-roles';
import type { UploadTokens } from './upload-tokens.ts';

const VERSION = 'v1beta1';
const RESOURCE = 'uploadtokenrequests';
const CLAIMS = '/persistentvolumeclaims';

interface UploadTokenRequest {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: object;
  readonly spec?: { readonly pvcName?: unknown };
}

/** Makes the group. */
export function createUploadTokenApi(store: Pick<ObjectStore, 'get'>, tokens: Promise<UploadTokens>): AggregatedApi {
  return {
    group: UPLOAD_GROUP,
    versions: [VERSION],
    discovery: [
      {
        name: RESOURCE,
        singularName: 'uploadtokenrequest',
        namespaced: true,
        kind: 'UploadTokenRequest',
        verbs: ['create'],
        group: UPLOAD_GROUP,
        version: VERSION,
      },
    ],
    operations: [],
    async handle(request, user, info, authorize) {
      const { namespace } = info;
      if (namespace !== '') await authorize(user, authorizationAttributes(info, request.query));
      const isHere = info.resource === RESOURCE && info.subresource === '' && info.name === '' && namespace !== '';
      if (!isHere) throw notFound({ group: UPLOAD_GROUP, resource: info.resource }, info.name);
      if (info.verb !== 'create') throw methodNotAllowed();
      const asked = parse(request.body);
      const name = asked.spec?.pvcName;
      if (typeof name !== 'string' || name === '') throw badRequest('spec.pvcName is the name of a claim');
      const uid = store.get({ prefix: CLAIMS, namespace, name })?.object.metadata.uid;
      if (uid === undefined) throw notFound({ group: '', resource: 'persistentvolumeclaims' }, name);
      const token = await (await tokens).sign({ namespace, name, uid });
      const answer = {
        ...asked,
        apiVersion: `${UPLOAD_GROUP}/${VERSION}`,
        kind: 'UploadTokenRequest',
        metadata: { ...asked.metadata, namespace },
        status: { token },
      };
      return {
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: new TextEncoder().encode(`${JSON.stringify(answer)}\n`),
      };
    },
  };
}

function parse(body: Uint8Array): UploadTokenRequest {
  try {
    const value = JSON.parse(new TextDecoder().decode(body)) as unknown;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as UploadTokenRequest;
  } catch {
    // The same as a value of another type.
  }
  throw badRequest('the body is an UploadTokenRequest in JSON');
}
