/** /openapi/v2: the whole API in one Swagger document, made when first asked for. */

import { encodeJsonInPieces } from '@coracle/apimachinery/meta/json-pieces';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { OPENAPI_V2_PROTO_TYPES } from '../kinds/openapi/gnostic.ts';
import { mergeSwagger } from '../kinds/openapi/merge-swagger.ts';
import { inForm } from './document-forms.ts';
import type { MakeSwagger } from './openapi-routes.ts';

/** Version 2 as a part of the server. */
export const swagger2: MakeSwagger = {
  protobufTypes: OPENAPI_V2_PROTO_TYPES,
  async make(infos, { form, others, writeElsewhere }) {
    // What makes it holds a text for every field: no process needs that before somebody asks.
    const { openApiV2 } = await import('../kinds/openapi/openapi-v2.ts');
    const document = mergeSwagger(await openApiV2(infos, nextTurn), others);
    const json = await encodeJsonInPieces(document, nextTurn);
    return form === 'json' ? json : (await inForm({ json, form: { type: 'openapi-v2' } }, writeElsewhere))!;
  },
};
