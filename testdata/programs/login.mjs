// node login.mjs URL SECONDS logs in at the authorization server of an MCP server by the SDK's own OAuth client, as a
// person in a browser would, and calls a tool before and after its access token, which lives for SECONDS, has expired.
// It prints what happened as JSON.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'

const [url, life] = [process.argv[2], Number(process.argv[3])]
const redirectUrl = 'http://127.0.0.1:9/callback' // nobody listens: the browser reads the code from the address

// account keeps what the SDK stores. Its tokens are for a resource; undefined is the one that the server names.
const account = resource => {
  const kept = { issued: [] }
  return {
    kept, redirectUrl,
    clientMetadata: { redirect_uris: [redirectUrl], token_endpoint_auth_method: 'none', scope: 'read',
      grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
    clientInformation: () => kept.client, saveClientInformation: client => { kept.client = client },
    tokens: () => kept.tokens, saveTokens: tokens => { kept.issued.push(kept.tokens = tokens) },
    codeVerifier: () => kept.verifier, saveCodeVerifier: verifier => { kept.verifier = verifier },
    redirectToAuthorization: page => { kept.page = page },
    ...(resource && { validateResourceURL: () => new URL(resource) }),
  }
}

// browse opens a page, logs in as ada and consents, until the browser is sent back with a code.
const browse = async page => {
  const cookies = new Map()
  let form
  for (let at = page.href; ;) {
    const answer = await fetch(at, { redirect: 'manual', headers: { cookie: [...cookies].map(c => c.join('=')).join('; ') },
      ...(form && { method: 'POST', body: form }) })
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)
      cookies.set(name, value)
    }
    const next = answer.headers.get('location')
    form = undefined
    if (next) {
      at = new URL(next, at).href
      if (at.startsWith(redirectUrl)) return new URL(at).searchParams
      continue
    }
    const text = await answer.text()
    const action = /<form[^>]* action="([^"]*)"/.exec(text)
    if (!action) throw new Error(`no form at ${at}: ${answer.status} ${text}`)
    form = new URLSearchParams({ prompt: /name="prompt" value="([^"]*)"/.exec(text)[1], login: 'ada', password: 'secret' })
    at = new URL(action[1], at).href
  }
}

const connect = async authProvider => {
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider })
  const client = new Client({ name: 'login', version: '1' })
  try {
    await client.connect(transport)
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error
    const back = await browse(authProvider.kept.page)
    if (!back.get('code')) throw new Error(`no code: ${back}`)
    await transport.finishAuth(back.get('code'))
    return connect(authProvider)
  }
  return client
}

const hash = async client => (await client.callTool({ name: 'call_tool',
  arguments: { name: 'text.hash', arguments: { text: 'a' } } })).content[0].text

// refused is how the server answers a token.
const refused = async token => {
  const answer = await fetch(url, { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: '{}' })
  return `${answer.status} ${answer.headers.get('www-authenticate')}`
}

const ada = account()
const client = await connect(ada)
const first = await hash(client)
const token = ada.kept.tokens.access_token
await new Promise(done => setTimeout(done, 1000 * (life + 1)))
const expired = await refused(token)
const again = await hash(client)

const other = account('https://other.example/mcp')
const foreign = await connect(other).then(() => 'accepted', error => error.message)
console.log(JSON.stringify({
  first, again, expired, foreign, tokens: ada.kept.issued.length, challenge: new URL(ada.kept.page).searchParams.get('code_challenge_method'),
  foreignToken: await refused(other.kept.tokens.access_token),
}))
await client.close()
