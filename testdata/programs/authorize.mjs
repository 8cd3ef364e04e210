// An authorization server for tests: oidc-provider with its pages for development, on a free port of loopback.
// It prints its issuer. Access tokens live for the seconds that the first argument says. With the second one, a port,
// they are JSON Web Tokens by a key of this process, also for clients without a user, and have a claim "groups". The
// clock of the server is behind by the seconds that a third one says.
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { Provider } from 'oidc-provider'

const life = Number(process.argv[2])
const port = Number(process.argv[3] ?? 0)
const now = Date.now
Date.now = () => now() - 1000 * Number(process.argv[4] ?? 0)
const signing = port === 0 ? {} : {
  jwks: { keys: [{ ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' }] },
  extraTokenClaims: () => ({ groups: ['web', 'platform'] }),
}
const server = createServer((request, response) => {
  if (request.url.startsWith('/moved/')) { // an issuer that has moved to another host
    response.writeHead(302, { location: issuer.replace('127.0.0.1', 'localhost') + request.url.slice('/moved'.length) }).end()
    return
  }
  provider.callback()(request, response)
})
await new Promise(done => server.listen(port, '127.0.0.1', done))
const issuer = `http://127.0.0.1:${server.address().port}`
const provider = new Provider(issuer, {
  ...signing,
  scopes: ['openid', 'offline_access', 'read'],
  features: {
    clientCredentials: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({ scope: 'read', audience: resource, accessTokenFormat: port === 0 ? 'opaque' : 'jwt', accessTokenTTL: life }),
    },
  },
  rotateRefreshToken: true,
  ttl: { AccessToken: life, AuthorizationCode: 60, Grant: 600, Interaction: 600, RefreshToken: 600, Session: 600 },
  issueRefreshToken: () => true,
})
console.log(issuer)
