/**
 * What the page of keys says, in the languages that it speaks. A further language is one more entry: the compiler names each text
 * that it lacks.
 */
import type { ClosedBecause } from '../domain/key-page.ts'

export type Texts = typeof en

const en = {
  order: (number: string) => `Order ${number}`,
  title: (here: number, coming: number): string => {
    if (here === 0) return coming === 1 ? 'Your key is being bought.' : `Your ${coming} keys are being bought.`
    if (coming === 0) return here === 1 ? 'Your key is here.' : `Your ${here} keys are here.`
    const rest = coming === 1 ? 'One more is being bought.' : `${coming} more are being bought.`
    return `${here} of ${here + coming} keys ${here === 1 ? 'is' : 'are'} here. ${rest}`
  },
  nothing: 'No key comes for this order.',
  notYet: 'No key can be shown at the moment.',
  lead: (shop: string) => `Show a key when you want to use it. ${shop} then sees that you opened it, and when.`,
  copyThem: 'Copy what you need. Until the page closes, you can open it here again.',
  wait: 'You need to do nothing. This page shows each key as soon as it is here.',
  keys: (count: number) => (count === 1 ? '1 key' : `${count} keys`),
  someOf: (here: number, all: number) => `${here} of ${all} keys`,
  show: (count: number) => (count === 1 ? 'Show the key' : `Show the ${count} keys`),
  copy: 'Copy',
  copied: 'Copied',
  picture: 'The key as a picture',
  download: (ending: string) => `Download the ${ending}`,
  opened: (when: string) => `Shown for the first time on ${when}`,
  coming: 'Being bought',
  replacing: 'A new key is being bought',
  replaced: (day: string) => `Replaced on ${day}: use the new key`,
  comingWhy: (shop: string) => `It is not here yet. ${shop} goes on by itself and knows that you wait.`,
  again: 'Look again',
  short: (shop: string) => `It does not come. Ask ${shop} for your money back.`,
  kept: (shop: string) => `${shop} looks at the order before more of its keys are shown.`,
  redeem: 'How to redeem',
  closed: 'This page is closed.',
  closedWhy: (shop: string): Record<ClosedBecause, string> => ({
    cancelled: `${shop} cancelled the order. No key can be opened here any more.`,
    refunded: `${shop} refunded the order. No key can be opened here any more.`,
    withdrawn: `${shop} closed this page. No key can be opened here any more.`,
    expired: 'The time of this page is over. No key can be opened here any more.',
  }),
  wasOpened: (when: string) => `Opened on ${when}, and no longer shown`,
  neverOpened: 'Never opened',
  secret: 'This link opens your keys for anyone who has it. Keep it to yourself.',
  closes: (day: string) => `The page closes on ${day}. Copy your keys before that day.`,
  contact: (shop: string) => `Contact ${shop}`,
  late: 'Your order is not complete yet.',
  lateLink: 'This link shows each key as soon as it is here:',
  lateMail: 'We send you each key as soon as it is here.',
  unknown: 'There is no page here.',
  unknownWhy: 'The link is not whole, or it is not one of ours. Open it from your mail again.',
}

const de: Texts = {
  order: (number) => `Bestellung ${number}`,
  title: (here, coming) => {
    if (here === 0)
      return coming === 1 ? 'Ihr Schlüssel wird gerade gekauft.' : `Ihre ${coming} Schlüssel werden gerade gekauft.`
    if (coming === 0) return here === 1 ? 'Ihr Schlüssel ist da.' : `Ihre ${here} Schlüssel sind da.`
    const rest = coming === 1 ? 'Einer wird noch gekauft.' : `${coming} werden noch gekauft.`
    return `${here} von ${here + coming} Schlüsseln ${here === 1 ? 'ist' : 'sind'} da. ${rest}`
  },
  nothing: 'Für diese Bestellung kommt kein Schlüssel.',
  notYet: 'Im Moment lässt sich kein Schlüssel anzeigen.',
  lead: (shop) =>
    `Zeigen Sie einen Schlüssel an, wenn Sie ihn brauchen. ${shop} sieht dann, dass und wann Sie ihn geöffnet haben.`,
  copyThem: 'Kopieren Sie, was Sie brauchen. Bis die Seite schließt, können Sie es hier wieder öffnen.',
  wait: 'Sie müssen nichts tun. Diese Seite zeigt jeden Schlüssel, sobald er da ist.',
  keys: (count) => `${count} Schlüssel`,
  someOf: (here, all) => `${here} von ${all} Schlüsseln`,
  show: (count) => (count === 1 ? 'Schlüssel anzeigen' : `${count} Schlüssel anzeigen`),
  copy: 'Kopieren',
  copied: 'Kopiert',
  picture: 'Der Schlüssel als Bild',
  download: (ending) => `${ending} herunterladen`,
  opened: (when) => `Zum ersten Mal angezeigt am ${when}`,
  coming: 'Wird gekauft',
  replacing: 'Ein neuer Schlüssel wird gekauft',
  replaced: (day) => `Ersetzt am ${day}: Benutzen Sie den neuen Schlüssel`,
  comingWhy: (shop) => `Er ist noch nicht da. ${shop} macht von selbst weiter und weiß, dass Sie warten.`,
  again: 'Noch einmal nachsehen',
  short: (shop) => `Er kommt nicht. Bitten Sie ${shop} um Ihr Geld.`,
  kept: (shop) => `${shop} sieht sich die Bestellung an, bevor weitere Schlüssel angezeigt werden.`,
  redeem: 'So lösen Sie ihn ein',
  closed: 'Diese Seite ist geschlossen.',
  closedWhy: (shop) => ({
    cancelled: `${shop} hat die Bestellung storniert. Hier lässt sich kein Schlüssel mehr öffnen.`,
    refunded: `${shop} hat die Bestellung erstattet. Hier lässt sich kein Schlüssel mehr öffnen.`,
    withdrawn: `${shop} hat diese Seite geschlossen. Hier lässt sich kein Schlüssel mehr öffnen.`,
    expired: 'Die Zeit dieser Seite ist vorbei. Hier lässt sich kein Schlüssel mehr öffnen.',
  }),
  wasOpened: (when) => `Geöffnet am ${when} und nicht mehr angezeigt`,
  neverOpened: 'Nie geöffnet',
  secret: 'Dieser Link öffnet Ihre Schlüssel für jeden, der ihn hat. Behalten Sie ihn für sich.',
  closes: (day) => `Die Seite schließt am ${day}. Kopieren Sie Ihre Schlüssel vorher.`,
  contact: (shop) => `${shop} schreiben`,
  late: 'Ihre Bestellung ist noch nicht vollständig.',
  lateLink: 'Dieser Link zeigt jeden Schlüssel, sobald er da ist:',
  lateMail: 'Wir schicken Ihnen jeden Schlüssel, sobald er da ist.',
  unknown: 'Hier ist keine Seite.',
  unknownWhy:
    'Der Link ist nicht vollständig, oder er ist keiner von uns. Öffnen Sie ihn noch einmal aus Ihrer E-Mail.',
}

const fr: Texts = {
  order: (number) => `Commande ${number}`,
  title: (here, coming) => {
    if (here === 0)
      return coming === 1 ? 'Votre clé est en cours d’achat.' : `Vos ${coming} clés sont en cours d’achat.`
    if (coming === 0) return here === 1 ? 'Votre clé est là.' : `Vos ${here} clés sont là.`
    const rest = coming === 1 ? 'Une autre est en cours d’achat.' : `${coming} autres sont en cours d’achat.`
    return `${here} clé${here === 1 ? '' : 's'} sur ${here + coming} ${here === 1 ? 'est' : 'sont'} là. ${rest}`
  },
  nothing: 'Aucune clé ne vient pour cette commande.',
  notYet: 'Aucune clé ne peut être affichée pour le moment.',
  lead: (shop) =>
    `Affichez une clé quand vous voulez l’utiliser. ${shop} voit alors que vous l’avez ouverte, et quand.`,
  copyThem: 'Copiez ce dont vous avez besoin. Vous pouvez l’afficher de nouveau ici jusqu’à la fermeture de la page.',
  wait: 'Vous n’avez rien à faire. Cette page affiche chaque clé dès qu’elle est là.',
  keys: (count) => `${count} clé${count === 1 ? '' : 's'}`,
  someOf: (here, all) => `${here} clé${here === 1 ? '' : 's'} sur ${all}`,
  show: (count) => (count === 1 ? 'Afficher la clé' : `Afficher les ${count} clés`),
  copy: 'Copier',
  copied: 'Copié',
  picture: 'La clé en image',
  download: (ending) => `Télécharger le fichier ${ending}`,
  opened: (when) => `Affichée pour la première fois le ${when}`,
  coming: 'En cours d’achat',
  replacing: 'Une nouvelle clé est en cours d’achat',
  replaced: (day) => `Remplacée le ${day} : utilisez la nouvelle clé`,
  comingWhy: (shop) => `Elle n’est pas encore là. ${shop} continue de lui-même et sait que vous attendez.`,
  again: 'Regarder encore',
  short: (shop) => `Elle ne vient pas. Demandez à ${shop} de vous rembourser.`,
  kept: (shop) => `${shop} vérifie la commande avant d’afficher d’autres clés.`,
  redeem: 'Comment l’utiliser',
  closed: 'Cette page est fermée.',
  closedWhy: (shop) => ({
    cancelled: `${shop} a annulé la commande. Plus aucune clé ne peut être ouverte ici.`,
    refunded: `${shop} a remboursé la commande. Plus aucune clé ne peut être ouverte ici.`,
    withdrawn: `${shop} a fermé cette page. Plus aucune clé ne peut être ouverte ici.`,
    expired: 'Le temps de cette page est passé. Plus aucune clé ne peut être ouverte ici.',
  }),
  wasOpened: (when) => `Ouverte le ${when}, et plus affichée`,
  neverOpened: 'Jamais ouverte',
  secret: 'Ce lien ouvre vos clés à quiconque le possède. Gardez-le pour vous.',
  closes: (day) => `La page ferme le ${day}. Copiez vos clés avant ce jour.`,
  contact: (shop) => `Écrire à ${shop}`,
  late: 'Votre commande n’est pas encore complète.',
  lateLink: 'Ce lien affiche chaque clé dès qu’elle est là :',
  lateMail: 'Nous vous envoyons chaque clé dès qu’elle est là.',
  unknown: 'Il n’y a pas de page ici.',
  unknownWhy: 'Le lien n’est pas entier, ou n’est pas de nous. Ouvrez-le de nouveau depuis votre courriel.',
}

const languages = { en, de, fr }
export type Language = keyof typeof languages

/** Returns the texts in the language of a tag such as `de-AT`; in English where there is no translation. */
export function textsIn(tag: string): { language: Language; texts: Texts } {
  const [language = ''] = tag.toLowerCase().split('-')
  const known = Object.hasOwn(languages, language) ? (language as Language) : 'en'
  return { language: known, texts: languages[known] }
}

/** Returns the sentences in which a customer learns that keys are late. @param tag a language; absent: English */
export function lateWords(
  tag = 'en',
  { here, coming, linked }: { here: number; coming: number; linked: boolean },
): [late: string, counts: string, next: string] {
  const { texts } = textsIn(tag)
  return [texts.late, texts.title(here, coming), linked ? texts.lateLink : texts.lateMail]
}
