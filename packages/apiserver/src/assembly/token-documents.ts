/** The documents by which others check service-account tokens (OpenID Connect Discovery 1.0, section 4). */
import type { ApiResponse } from '@coracle/runtime/http/seam';

/** By path: the keys, and where they are. */
export const tokenDocuments = ({
  issuer,
  keySet,
}: {
  readonly issuer: string;
  readonly keySet: unknown;
}): ReadonlyMap<string, () => ApiResponse> =>
  new Map([
    ['/openid/v1/jwks', () => jsonResponse(keySet, 'application/jwk-set+json')],
    [
      '/.well-known/openid-configuration',
      () =>
        jsonResponse({
          issuer,
          jwks_uri: `${issuer}/openid/v1/jwks`,
          response_types_supported: ['id_token'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['ES256'],
        }),
    ],
  ]);

const jsonResponse = (value: unknown, type = 'application/json'): ApiResponse => ({
  status: 200,
  headers: { 'content-type': type, 'cache-control': 'public, max-age=3600' },
  body: new TextEncoder().encode(JSON.stringify(value)),
});
