-- What a licence key is: text, url, image, file or pair. It is known without opening the key.
alter table licence_keys add column type text not null default 'text';
